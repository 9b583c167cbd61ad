/** Metrics of a replica on a database. Without one, they are absent. */
import type { Metric } from '../../shared/logs/prometheus.ts'
import type { Keeper } from '../log/keeper.ts'
import type { TaskStore } from '../task/tasks.ts'

export interface ReplicaSources {
  readonly keeper: Pick<Keeper, 'replica'>
  readonly store: Pick<TaskStore, 'graphCount'>
}

export const REPLICA_METRICS: readonly Metric<ReplicaSources>[] = [
  {
    name: 'service_control_replica_lease_seconds',
    type: 'gauge',
    help: 'With a database: seconds that are left of the lease.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.leaseMsLeft / 1_000 }],
  },
  {
    name: 'service_control_replica_turn_duration_seconds',
    type: 'histogram',
    help: 'With a database: how long turns (commits) took.',
    samples: ({ keeper: { replica } }) => replica?.turnSeconds.samples(),
  },
  {
    name: 'service_control_replica_turns_total',
    type: 'counter',
    help: 'With a database: committed turns.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.turnSeconds.count }],
  },
  {
    name: 'service_control_replica_adopted_graphs_total',
    type: 'counter',
    help: 'With a database: adopted graphs.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.adoptedTotal }],
  },
  {
    name: 'service_control_replica_fenced_total',
    type: 'counter',
    help: 'With a database: replicas that this one has declared dead.',
    samples: ({ keeper: { replica } }) => replica && [{ value: replica.fencedTotal }],
  },
  {
    name: 'service_control_replica_owned_graphs',
    type: 'gauge',
    help: 'With a database: graphs that the replica has in memory.',
    samples: ({ keeper: { replica }, store }) => replica && [{ value: store.graphCount }],
  },
]
