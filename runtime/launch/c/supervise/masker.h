/*
 * Masks texts in a stream of bytes: each longest run of bytes that occurrences of the texts cover becomes `***`. What comes
 * out does not depend on how the stream was cut.
 *
 * An Aho-Corasick automaton reads each byte once, whatever a task writes. Its state is the longest text that may have begun,
 * so only as many bytes are held back. masker.ts does the same.
 */
#ifndef MASKER_H
#define MASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest text, and of all together. */
#define MASK_MAX_TEXT_BYTES 65536
#define MASK_MAX_BYTES 2097152

/* Bytes that are pushed at once, at most. */
#define MASK_CHUNK_BYTES 32768

struct mask_node;

/* The automaton, for any number of maskers. */
struct mask_texts {
  struct mask_node *nodes;
  uint32_t size;
  uint32_t count;
  /* The nodes after the first byte; 0 where no text begins with it. */
  uint32_t first[256];
  size_t longest;
};

/* Makes room for texts of so many bytes together. False without memory. */
bool mask_texts_start(struct mask_texts *texts, size_t bytes);

void mask_texts_add(struct mask_texts *texts, const unsigned char *text, size_t length);

/* To be called after the last text. False without memory. */
bool mask_texts_finish(struct mask_texts *texts);

/* A part of what is held that texts cover. */
struct mask_span {
  uint32_t from;
  uint32_t to;
};

struct masker {
  const struct mask_texts *texts;
  uint32_t node;
  /* What is not passed on yet, with room for another chunk. */
  unsigned char *held;
  uint32_t held_bytes;
  /* In order; no two of them touch. */
  struct mask_span *spans;
  uint32_t span_count;
  /* Whether the last byte that was passed on was covered. */
  bool is_masking;
  /* What can be passed on, after a push or the end. */
  unsigned char *out;
  size_t out_bytes;
};

/* False without memory. */
bool masker_start(struct masker *masker, const struct mask_texts *texts);

/* Where to put the next chunk, of at most MASK_CHUNK_BYTES, before it is pushed. */
unsigned char *masker_room(struct masker *masker);

void masker_push(struct masker *masker, size_t length);

/* The rest, at the end of the stream. */
void masker_end(struct masker *masker);

#endif
