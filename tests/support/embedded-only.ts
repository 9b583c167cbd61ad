/**
 * Contract tests of control that cannot apply with a database, each with the reason. All others run with one, too
 * (`run-on-database.ts`).
 */

/** Files without a service that could have a database, or about its data directory as a whole. */
export const EMBEDDED_FILES: readonly { readonly reason: string; readonly files: RegExp }[] = [
  {
    reason: 'the runtime service alone',
    files: /^runtime-(?!(odd-answers|pool|secrets|task-logs|tasks|tasks-delete|warnings)\.)/,
  },
  { reason: 'start databases of their own', files: /^(database-|kept-database)/ },
  {
    reason: 'the client and its files alone',
    files: /^client-(doctor|install-mcp|ensure-running|ensure-running-docker|up)\./,
  },
  { reason: 'starts that fail before they reach a database', files: /^(command-line|refused-start)\./ },
  {
    reason: 'the journal, the state file and their directory: kept, cut, damaged, full, of an earlier version',
    files: /^(data-dir|durability|kept-data|restart-with-ended|state)\./,
  },
]

/** Titles, with those of the blocks around them, or their beginnings. */
export const EMBEDDED_TESTS: readonly { readonly reason: string; readonly titles: readonly string[] }[] = [
  {
    reason: 'look into the directory of large results; database-features.long.test.ts looks into the rows',
    titles: [
      'a deletion of a graph frees the files of large results',
      'a file goes with the record of its task, and stays while the task is replaced',
      'a file of an earlier version, which has no checksum, is read if it is JSON',
      'a file that is damaged costs only the result, and its task says so',
      'a large result is in GET and in the list, and not in the state file; it survives kill and stop',
      'a task gets a large result, from its file, and keeps the digest of a large input',
      'a task gets a large value in each attempt, also after a kill of the service',
      'a task with the key of an earlier success shares a large result, which stays when the source goes',
      'a task with the key of an earlier success shares a result of some kilobytes, on disk too',
      'on disk a result in a file goes with the last graph that has it',
      'the error of a task that failed stays, before what is said of its result',
      'the output of a command that fails is kept whole, that of an attempt which is tried again is not',
      'what a crash left is removed at the next start, and nothing else',
    ],
  },
  {
    reason: 'wait for the state file or the journal, or look into them',
    titles: [
      'a graph of 30 MB, sent',
      'a condition that was met holds for a task that waits for a slot: state file',
      'a name and labels are kept, with the first task of the graph, across a crash and a restart',
      'a restart decides as before, from the journal and from the state file',
      'files that a backup made readable for all are closed at the start',
      'what an earlier version accepted loads and runs',
      'a restart keeps outcomes, deletions and lists; a stop lets children run again',
      'a restart runs what has not ended, for the same elements, from a state file',
      'graphs with ids of their own survive a crash, and run on after it',
      'handles of an earlier version belong to the runtime service without a name',
      'it is in no answer, no log line and no file but those of a restart, which their owner alone reads',
      'on disk a source that has to make room for its rerun leaves it its outcomes',
      'outcomes survive a kill: state file',
      'over a restart an approval waits on, with the same message: state file',
      'the first task of a graph may be gone',
      'the past that is gone gives a reset with the present state',
      'what becomes of a deleted running task after a snapshot still decides about its dependents',
    ],
  },
  {
    reason: 'look into the file of callbacks, or empty it; database-features.long.test.ts does so with their rows',
    titles: [
      'each approval that waits for its answer is called back for, also by the start after a kill',
      'seq is the number of the event that a start makes up for',
      'survives a kill before it was written down',
      'survives a kill between two tries',
      'survives a kill while the graph runs, and a stop',
    ],
  },
  {
    reason: 'fill the disk of the data directory or remove it, which stops no service with a database',
    titles: [
      'a data directory that is gone is noticed before the next 202',
      'a full disk is told, also before a request has met it, and ends with its cause',
      'the client ensure-running takes it for reachable, and says that it is not ready and why',
      'the client says what /health says; with --ready its exit code is 1 while the service is not',
      'works while the disk is full',
    ],
  },
  {
    reason: 'a takeover keeps the removal of a graph, not what happened in it before',
    titles: [
      'a graph that was removed while nobody watched is told to its end to a client that resumes, after a kill too',
      'a graph that was removed while nobody watched so are its tasks, and deleted tasks of a graph that is there',
    ],
  },
  {
    reason: 'count open files, which the connections to the database are, too',
    titles: [
      'as events who leaves is gone at once, and a service that stops lets go',
      'followers one who leaves is gone at once',
    ],
  },
  {
    reason: 'lists wait for other replicas, and an answer that waits is lost to a request that is sent behind it',
    titles: [
      'of 5,000 tasks pages of 1,000 are answered in order, with the cursor of the next',
      'of control: what needs no disk is answered in order, lists too',
    ],
  },
  {
    reason:
      'compare past events with those that were told: of a graph that was changed or removed, a database shows what is left',
    titles: ['random things of two tenants and an operator'],
  },
]
