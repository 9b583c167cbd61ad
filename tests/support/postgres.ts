/** PostgreSQL for tests, as scripts start it, on ports that no other test has. */
import { type Postgres, type PostgresOptions, startPostgres as start } from '../../scripts/postgres-server.ts'
import { freePort } from './free-port.ts'

export {
  asServerUser,
  giveToServerUser,
  PASSWORD,
  Postgres,
  type PostgresOptions,
} from '../../scripts/postgres-server.ts'

export const startPostgres = (options: PostgresOptions = {}): Promise<Postgres> => start({ freePort, ...options })
