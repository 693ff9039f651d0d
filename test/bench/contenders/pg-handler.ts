// POST /sql as a user would write it with Bun.serve and pg. A program of the bench; its settings come from the environment.
import { Pool } from "pg";
import { readQuery, readSettings } from "./handler-request.ts";

const { port, url, poolSize, authorization } = readSettings();
const pool = new Pool({ connectionString: url, max: poolSize });

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
        const { rows, rowCount, command } = await pool.query(query, params);
        return Response.json({ rows, rowCount, command });
      },
    },
  },
});
