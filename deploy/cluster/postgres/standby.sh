#!/bin/sh
# The standby: copies the primary at its first start, and then follows it. To make it the primary once the other one is
# gone for good: `pg_ctl promote`, or `select pg_promote()`.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  until pg_isready -q -h "$PRIMARY_HOST" -p "${PRIMARY_PORT:-5432}"; do sleep 1; done
  PGPASSWORD=$POSTGRES_PASSWORD pg_basebackup -D "$PGDATA" -R -X stream -c fast \
    -d "host=$PRIMARY_HOST port=${PRIMARY_PORT:-5432} user=replicator application_name=standby"
  chmod 700 "$PGDATA"
fi
# The copy has the setting of the primary, too. Once promoted it has no standby of its own, and would wait for one at each
# commit.
exec postgres -c synchronous_standby_names= "$@"
