/*
 * peers.h - to whom a process sends: messages and bytes by the receiver's rank in MPI_COMM_WORLD, counted where they
 * are sent. Only where it is asked for; otherwise nothing here is called but peers_open and peers_look.
 *
 * Each thread counts in an array with a place for every process of the world, of which memory is used by the page as
 * it is touched. The reader shows PEERS_AT_FIRST of them by themselves, and all others together.
 */
#ifndef MPIT_CALLS_PEERS_H
#define MPIT_CALLS_PEERS_H

#include "block.h"

/*
 * How many peers are shown by themselves: as many as there are up to PEERS_AT_FIRST, those with the most bytes first.
 * After that, up to PEERS_MOST in all, those that come to have twice as many bytes as the least of them, which is more
 * than chance. A peer that is shown stays.
 */
#ifndef PEERS_AT_FIRST
#define PEERS_AT_FIRST 64
#endif
#define PEERS_MOST (2 * PEERS_AT_FIRST)

/* Once, in begin, before the first block is made: decides whether calls_state.peers. */
void peers_open(void);

/* Any thread: where what is sent to a rank of a communicator or window is counted. */
unsigned peers_place(int kind, intptr_t handle, int rank);
/* The thread has sent a message there. It has a block. */
void peers_count(unsigned peer, uint64_t bytes);

/* ---- the reader: the gate is held ---- */

/* Who has been sent to since the last time. Places 0 up to the answer are shown; what each stands for never changes. */
unsigned peers_look(void);
/* The rank in MPI_COMM_WORLD; WORLD_NOBODY: all others together, those of other worlds included. */
int peers_rank(unsigned place);
/* Neither ever falls, and together all places have what has been counted. */
uint64_t peers_messages(unsigned place);
uint64_t peers_bytes(unsigned place);

/* The rank in MPI_COMM_WORLD of one of the communicator or window of a cell's key; NO_PEER: not known; ANY_PEER. */
int peers_of(uint64_t key, int rank);

#endif
