// The law behind read-your-writes: whatever the order of parallel answers, the next request carries
// tokens that cover every answer so far. The gateway is a model: a token is a position, an answer's
// is the highest of those its request carried and its own.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { joinTokens, SessionTokens } from "../../sdk/src/session-tokens.ts";

const UNDER_WAY_MAX = 4;

interface Sent {
  readonly tokens: readonly string[];
  readonly merged: number;
}

function highest(tokens: readonly string[]): number {
  return Math.max(0, ...tokens.map(Number));
}

/**
 * Each step sends a request, or answers the one at that place; the gateway's own position grows or
 * is an old one.
 */
const steps = fc.array(
  fc.record({
    isSend: fc.boolean(),
    place: fc.nat(UNDER_WAY_MAX - 1),
    ownPosition: fc.nat(20),
    hasToken: fc.boolean(),
  }),
  { maxLength: 60 },
);

test("held tokens cover every answer, and are never more than the requests under way", () => {
  fc.assert(
    fc.property(steps, (schedule) => {
      const tokens = new SessionTokens(null);
      const underWay: Sent[] = [];
      let answered = 0;
      for (const { isSend, place, ownPosition, hasToken } of schedule) {
        if (isSend && underWay.length < UNDER_WAY_MAX) {
          const sent = tokens.held;
          underWay.push({ tokens: sent, merged: Math.max(highest(sent), ownPosition) });
        } else {
          const [request] = underWay.splice(place, 1);
          if (request !== undefined && (hasToken || request.tokens.length > 0)) {
            tokens.cover(request.tokens, String(request.merged));
            answered = Math.max(answered, request.merged);
          }
        }
        expect(highest(tokens.held)).toBe(answered);
        expect(tokens.held.length).toBeLessThanOrEqual(UNDER_WAY_MAX);
        expect(joinTokens(tokens.held)?.split(",").length ?? 0).toBe(tokens.held.length);
      }
    }),
  );
});
