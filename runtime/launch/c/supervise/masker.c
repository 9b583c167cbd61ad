#include "supervise/masker.h"

#include <stdlib.h>
#include <string.h>

#define MASK "***"
#define MASK_BYTES (sizeof MASK - 1)

/* A beginning of texts. Node 0 is the empty one, and so stands for none in links. */
struct mask_node {
  /* The longest end of this beginning that begins a text, too. */
  uint32_t fail;
  /* Bytes of the longest text that ends here, also as an end of this beginning; 0 if none does. */
  uint32_t longest;
  uint32_t depth;
  uint32_t child;
  uint32_t sibling;
  unsigned char byte;
};

bool mask_texts_start(struct mask_texts *texts, size_t bytes) {
  *texts = (struct mask_texts){.size = (uint32_t)bytes + 1, .count = 1};
  texts->nodes = calloc(texts->size, sizeof *texts->nodes);
  return texts->nodes != NULL;
}

static uint32_t find(const struct mask_texts *texts, uint32_t node, unsigned char byte) {
  if (node == 0) return texts->first[byte];
  uint32_t at = texts->nodes[node].child;
  while (at != 0 && texts->nodes[at].byte != byte) at = texts->nodes[at].sibling;
  return at;
}

static uint32_t insert(struct mask_texts *texts, uint32_t parent, unsigned char byte) {
  uint32_t node = texts->count++;
  struct mask_node *above = &texts->nodes[parent];
  texts->nodes[node] = (struct mask_node){.depth = above->depth + 1, .sibling = above->child, .byte = byte};
  above->child = node;
  if (parent == 0) texts->first[byte] = node;
  return node;
}

void mask_texts_add(struct mask_texts *texts, const unsigned char *text, size_t length) {
  uint32_t node = 0;
  for (size_t i = 0; i < length; i++) {
    uint32_t next = find(texts, node, text[i]);
    node = next == 0 ? insert(texts, node, text[i]) : next;
  }
  texts->nodes[node].longest = (uint32_t)length;
  if (length > texts->longest) texts->longest = length;
}

static uint32_t next_of(const struct mask_texts *texts, uint32_t node, unsigned char byte) {
  for (;; node = texts->nodes[node].fail) {
    uint32_t found = find(texts, node, byte);
    if (found != 0 || node == 0) return found;
  }
}

/* Breadth first, so that what a node falls back to is linked before it. */
bool mask_texts_finish(struct mask_texts *texts) {
  uint32_t *queue = calloc(texts->count, sizeof *queue);
  if (queue == NULL) return false;
  uint32_t end = 1; /* the first entry is node 0 */
  for (uint32_t at = 0; at < end; at++) {
    const struct mask_node *node = &texts->nodes[queue[at]];
    for (uint32_t i = node->child; i != 0; i = texts->nodes[i].sibling) {
      struct mask_node *child = &texts->nodes[i];
      child->fail = queue[at] == 0 ? 0 : next_of(texts, node->fail, child->byte);
      if (child->longest == 0) child->longest = texts->nodes[child->fail].longest;
      queue[end++] = i;
    }
  }
  free(queue);
  return true;
}

bool masker_start(struct masker *masker, const struct mask_texts *texts) {
  size_t room = texts->longest + MASK_CHUNK_BYTES;
  /* Spans do not touch, so there are at most half as many as bytes, and so many masks. */
  *masker = (struct masker){
    .texts = texts,
    .held = malloc(room),
    .spans = calloc(room / 2 + 1, sizeof *masker->spans),
    .out = malloc(room / 2 + (room / 2 + 1) * MASK_BYTES),
  };
  return masker->held != NULL && masker->spans != NULL && masker->out != NULL;
}

unsigned char *masker_room(struct masker *masker) { return masker->held + masker->held_bytes; }

static void cover(struct masker *masker, uint32_t from, uint32_t to) {
  while (masker->span_count > 0 && masker->spans[masker->span_count - 1].to >= from) {
    uint32_t begin = masker->spans[--masker->span_count].from;
    if (begin < from) from = begin;
  }
  masker->spans[masker->span_count++] = (struct mask_span){from, to};
}

static void put(struct masker *masker, const void *bytes, size_t length) {
  memcpy(masker->out + masker->out_bytes, bytes, length);
  masker->out_bytes += length;
}

static uint32_t pass_on(struct masker *masker, uint32_t from, uint32_t to) {
  if (to <= from) return from;
  put(masker, masker->held + from, to - from);
  masker->is_masking = false;
  return to;
}

static uint32_t lesser(uint32_t one, uint32_t other) { return one < other ? one : other; }

static void release(struct masker *masker, uint32_t count) {
  uint32_t at = 0;
  uint32_t kept = 0;
  masker->out_bytes = 0;
  for (uint32_t i = 0; i < masker->span_count; i++) {
    struct mask_span span = masker->spans[i];
    at = pass_on(masker, at, lesser(span.from, count));
    if (span.from < count) {
      if (!masker->is_masking) put(masker, MASK, MASK_BYTES);
      masker->is_masking = true;
      at = lesser(span.to, count);
    }
    if (span.to > count)
      masker->spans[kept++] = (struct mask_span){span.from > count ? span.from - count : 0, span.to - count};
  }
  pass_on(masker, at, count);
  masker->span_count = kept;
  masker->held_bytes -= count;
  memmove(masker->held, masker->held + count, masker->held_bytes);
}

void masker_push(struct masker *masker, size_t length) {
  const struct mask_texts *texts = masker->texts;
  uint32_t end = masker->held_bytes + (uint32_t)length;
  uint32_t node = masker->node;
  for (uint32_t i = masker->held_bytes; i < end; i++) {
    node = next_of(texts, node, masker->held[i]);
    uint32_t longest = texts->nodes[node].longest;
    if (longest > 0) cover(masker, i + 1 - longest, i + 1);
  }
  masker->node = node;
  masker->held_bytes = end;
  release(masker, end - texts->nodes[node].depth);
}

void masker_end(struct masker *masker) {
  masker->node = 0;
  release(masker, masker->held_bytes);
}
