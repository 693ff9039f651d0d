// POST /sql as a user would write it with Bun.serve and Bun.SQL. A program of the bench; its settings come from the environment.
import { SQL } from "bun";
import { readQuery, readSettings } from "./handler-request.ts";

const { port, url, poolSize, authorization } = readSettings();
const sql = new SQL(url, { max: poolSize });

Bun.serve({
  hostname: "127.0.0.1",
  port,
  routes: {
    "/sql": {
      async POST(request) {
        if (request.headers.get("authorization") !== authorization) {
          return new Response(null, { status: 401 });
        }
        const { query, params } = await readQuery(request);
        // Bun prepares it on each connection and keeps it.
        const rows: unknown[] = await sql.unsafe(query, params);
        return Response.json({ rows, rowCount: rows.length });
      },
    },
  },
});
