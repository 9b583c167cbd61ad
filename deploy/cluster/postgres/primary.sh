#!/bin/sh
# Runs once, when the directory of the primary is made: from the next start on, each commit waits for the standby.
set -eu

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<SQL
create role replicator login replication password '$POSTGRES_PASSWORD';
alter system set synchronous_standby_names = 'standby';
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
