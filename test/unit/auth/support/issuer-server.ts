// An issuer's key endpoint for tests: answers by hand, counts requests, and can be slow or down.
import type { FetchKeys } from "#auth/jwt/key-source.ts";

export class FakeIssuer {
  /** What the next requests get; an Error is thrown, a promise makes them wait. */
  answer: () => Response | Error | Promise<Response>;
  readonly requests: { readonly url: string; readonly redirect: string }[] = [];

  constructor(keys: readonly unknown[]) {
    this.answer = () => Response.json({ keys });
  }

  publish(keys: readonly unknown[]): void {
    this.answer = () => Response.json({ keys });
  }

  goDown(): void {
    this.answer = () => new Error("connection refused");
  }

  readonly fetch: FetchKeys = async (url, init) => {
    this.requests.push({ url, redirect: init.redirect });
    const abort = new Promise<never>((_resolve, reject) => {
      init.signal.addEventListener("abort", () => reject(init.signal.reason));
    });
    const answer = await Promise.race([this.answer(), abort]);
    if (answer instanceof Error) throw answer;
    return answer;
  };
}
