/* Who lays out those baits that need a process, and notices who takes them. */
#ifndef KEEPER_H
#define KEEPER_H

/*
 * Runs on the host, outside of the sandbox, as `taskmill-escape --keep-baits PATH...`. Each PATH becomes a listening
 * socket. The secret in its environment is in its shared memory and queue, too, and whoever connects is told it. Prints the baits as arguments of `--bait`, a line each, then an empty line. When its standard input ends it takes
 * them away, and prints a line for each socket that somebody connected to.
 */
int keep_baits(char **socket_paths);

#endif
