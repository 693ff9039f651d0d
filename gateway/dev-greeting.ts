// What `walgate dev` prints once everything runs: addresses, a token, and commands that work when pasted.
import type { Gateway } from "./compose.ts";
import { formatAddress } from "./config/values.ts";
import type { Cluster } from "./embedded/cluster.ts";

/** Each command stands for itself, but for the read, which uses the token that the write has put into $TOKEN. */
export function devGreeting(cluster: Cluster, gateway: Gateway, jwt: string): string {
  const { http, postgres } = gateway;
  if (http === undefined || postgres === undefined) throw new Error("a door is closed");
  const url = `http://${formatAddress(http)}`;
  const authorization = `-H 'Authorization: Bearer ${jwt}'`;
  const insert = { query: "insert into notes (body) values ($1) returning id", params: ["hello"] };
  const select = { query: "select id, body from notes order by id desc limit 3" };
  const program = [
    "import { connect } from '@walgate/sdk'",
    `const db = connect({ url: '${url}', token: '${jwt}' }).session()`,
    "await db\\`insert into notes (body) values (\\${'from the SDK'})\\`",
    "console.log(await db\\`select id, body from notes order by id desc limit 1\\`.result())",
  ].join("; ");
  const servers = [cluster.primary, ...cluster.replicas]
    .map(({ name, port }) => `${name} 127.0.0.1:${port}`)
    .join(", ");
  return `
walgate is running. Ctrl-C stops everything; the data stay.

HTTP        ${url}   (POST /v1/query, POST /sql)
WebSocket   ws://${formatAddress(http)}/v2
psql        ${formatAddress(postgres)}, database ${cluster.database}
behind it   ${servers}
settings    ${cluster.home}/walgate.toml
JWT         ${jwt}

1. Write, and keep the read-after-write token:
TOKEN=$(curl -s -D - -o /dev/null ${url}/v1/query ${authorization} -d '${JSON.stringify(insert)}' | tr -d '\\r' | sed -n 's/^walgate-token: //Ip'); echo "$TOKEN"

2. Read with the token; Walgate-Served-By tells who answered:
curl -si ${url}/v1/query ${authorization} -H "Walgate-Token: $TOKEN" -d '${JSON.stringify(select)}'; echo

3. The same over the wire protocol, the JWT as the password:
PGPASSWORD='${jwt}' psql -h ${postgres.host} -p ${postgres.port} -U developer ${cluster.database} -c 'table notes'

4. The SDK from Node.js, in this folder:
node --input-type=module -e "${program}"
`;
}
