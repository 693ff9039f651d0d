// Password preparation as PostgreSQL does it: SASLprep where it applies, the raw text otherwise.
//
// PostgreSQL runs RFC 4013 and, when the password is not allowed there (prohibited, unassigned or
// mixed-direction characters, or nothing left), silently uses the bytes as they are. We do the same.
// Two tables are taken from the runtime's newer Unicode instead of Unicode 3.2: unassigned code
// points, and left-to-right characters (here: letters and what counts as such). That differs only
// for a password that NFKC changes and that also holds a character from after 2002, such as an
// emoji, or a left-to-right symbol beside Hebrew or Arabic text.

// RFC 3454, table B.1: characters that are mapped to nothing.
const MAPPED_TO_NOTHING =
  /\u{34f}|[\u{180b}-\u{180d}]|[\u{fe00}-\u{fe0f}]|[\u{ad}\u{1806}\u{200b}-\u{200d}\u{2060}\u{feff}]/gu;
// Table C.1.2: spaces that are mapped to U+0020. U+200B also stands in B.1; as in PostgreSQL, the
// mapping to space comes first.
const OTHER_SPACES = /[\u{a0}\u{1680}\u{2000}-\u{200b}\u{202f}\u{205f}\u{3000}]/gu;
// Tables C.2.1 to C.9: control, private use, non-character, surrogate, and the few special ones.
const PROHIBITED =
  /[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u{340}\u{341}\u{6dd}\u{70f}\u{180e}\u{200c}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{2063}\u{206a}-\u{206f}\u{2ff0}-\u{2ffb}\u{feff}\u{fff9}-\u{fffd}\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}]/u;
const UNASSIGNED = /\p{Cn}/u;
// Table D.1: right-to-left characters.
const RIGHT_TO_LEFT =
  "\\u{5be}\\u{5c0}\\u{5c3}\\u{5d0}-\\u{5ea}\\u{5f0}-\\u{5f4}\\u{61b}\\u{61f}\\u{621}-\\u{63a}\\u{640}-\\u{64a}\\u{66d}-\\u{66f}\\u{671}-\\u{6d5}\\u{6dd}\\u{6e5}\\u{6e6}\\u{6fa}-\\u{6fe}\\u{700}-\\u{70d}\\u{710}\\u{712}-\\u{72c}\\u{780}-\\u{7a5}\\u{7b1}\\u{200f}\\u{fb1d}\\u{fb1f}-\\u{fb28}\\u{fb2a}-\\u{fb36}\\u{fb38}-\\u{fb3c}\\u{fb3e}\\u{fb40}\\u{fb41}\\u{fb43}\\u{fb44}\\u{fb46}-\\u{fbb1}\\u{fbd3}-\\u{fd3d}\\u{fd50}-\\u{fd8f}\\u{fd92}-\\u{fdc7}\\u{fdf0}-\\u{fdfc}\\u{fe70}-\\u{fe74}\\u{fe76}-\\u{fefc}";
const HAS_RIGHT_TO_LEFT = new RegExp(`[${RIGHT_TO_LEFT}]`, "u");
const ENDS_RIGHT_TO_LEFT = new RegExp(`^[${RIGHT_TO_LEFT}](?:.*[${RIGHT_TO_LEFT}])?$`, "su");
const HAS_LEFT_TO_RIGHT = new RegExp(
  `(?![${RIGHT_TO_LEFT}])[\\p{L}\\p{Nl}\\p{Mc}\\u{249c}-\\u{24e9}]`,
  "u",
);
const ASCII_ONLY = /^[\x00-\x7f]*$/; // oxlint-disable-line no-control-regex -- PostgreSQL's shortcut takes all of ASCII, controls included.

/** The text whose UTF-8 bytes go into PBKDF2. */
export function prepareScramPassword(password: string): string {
  if (ASCII_ONLY.test(password)) return password;
  const mapped = password.replace(OTHER_SPACES, " ").replace(MAPPED_TO_NOTHING, "");
  // As in PostgreSQL, and unlike the RFC, the checks look at the text before it is normalized.
  return isAllowed(mapped) ? mapped.normalize("NFKC") : password;
}

function isAllowed(mapped: string): boolean {
  if (mapped === "" || PROHIBITED.test(mapped) || UNASSIGNED.test(mapped)) return false;
  if (!HAS_RIGHT_TO_LEFT.test(mapped)) return true;
  return ENDS_RIGHT_TO_LEFT.test(mapped) && !HAS_LEFT_TO_RIGHT.test(mapped);
}
