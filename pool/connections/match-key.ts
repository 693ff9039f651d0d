// The match key: which requests a backend connection may serve as it is, and which after a change of principal.
import type { StartupProfile } from "./startup-profile.ts";

/** What of a request or a connection decides whether they match; database and user are the pool's own. */
export interface Matchable {
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions: string;
}

// A profile is immutable, so its part is encoded once. A trusted request without startup options
// then costs no allocation: this string is its whole key.
const encodedProfiles = new WeakMap<StartupProfile, string>();

function encodeProfile(profile: StartupProfile): string {
  const known = encodedProfiles.get(profile);
  if (known !== undefined) {
    return known;
  }
  const encoded = JSON.stringify([profile.name, profile.generation]);
  encodedProfiles.set(profile, encoded);
  return encoded;
}

/** All of the key but the principal: connections of one family become each other by DISCARD ALL. */
export function familyKeyOf({ profile, startupOptions }: Matchable): string {
  const encoded = encodeProfile(profile);
  return startupOptions === "" ? encoded : encoded + JSON.stringify(startupOptions);
}

/**
 * Two requests match exactly if their keys are equal. Unambiguous whatever the parts contain: an array and
 * a string in JSON end where they end, and the principal is the rest behind the comma.
 */
export function matchKeyOf(family: string, principal: string): string {
  return principal === "" ? family : `${family},${principal}`;
}
