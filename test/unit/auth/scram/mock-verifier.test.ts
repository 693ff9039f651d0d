// Unit tests of auth/scram/mock-verifier.ts.
import { expect, test } from "bun:test";
import { mockScramVerifier, SCRAM_SHAPE_DEFAULT } from "#auth/scram/mock-verifier.ts";

const key = new Uint8Array(32).fill(3);

test("the same name gets the same mock, and another name or key another one", () => {
  const mock = mockScramVerifier(key, "bob", [SCRAM_SHAPE_DEFAULT]);

  expect(mockScramVerifier(key, "bob", [SCRAM_SHAPE_DEFAULT])).toEqual(mock);
  expect(mockScramVerifier(key, "eve", [SCRAM_SHAPE_DEFAULT]).salt).not.toEqual(mock.salt);
  expect(mockScramVerifier(new Uint8Array(32), "bob", [SCRAM_SHAPE_DEFAULT]).salt).not.toEqual(
    mock.salt,
  );
});

test("a mock has iterations and salt length of one of the real users", () => {
  const shapes = [
    { iterations: 10_000, saltBytes: 16 },
    { iterations: 4096, saltBytes: 40 },
  ];
  const names = Array.from({ length: 50 }, (_, index) => `user-${index}`);

  const seen = new Set(
    names.map((name) => {
      const { iterations, salt } = mockScramVerifier(key, name, shapes);
      return JSON.stringify({ iterations, saltBytes: salt.byteLength });
    }),
  );

  expect(seen).toEqual(new Set(shapes.map((shape) => JSON.stringify(shape))));
});

test("without users a mock looks like PostgreSQL's default", () => {
  const { iterations, salt } = mockScramVerifier(key, "bob", []);

  expect({ iterations, saltBytes: salt.byteLength }).toEqual({ iterations: 4096, saltBytes: 16 });
});
