/** PostgreSQL for tests, as scripts start it. */
export {
  asServerUser,
  giveToServerUser,
  PASSWORD,
  Postgres,
  type PostgresOptions,
  startPostgres,
} from '../../scripts/postgres-server.ts'
