#include "base/mount-list.h"

#include <stddef.h>
#include <string.h>

#include "base/complaint.h"

/* Operands in order: `n` name of a step, `s` source, `t` target, `o` options. */
static const struct {
  const char *name;
  const char *operands;
  enum step step;
} OPS[] = {
  [OP_FREEZE] = {"freeze", "t", STEP_FREEZE},
  [OP_TMPFS] = {"tmpfs", "to", STEP_SCAFFOLD},
  [OP_DIR] = {"dir", "to", STEP_SCAFFOLD},
  [OP_MOUNTPOINT] = {"mountpoint", "st", STEP_SCAFFOLD},
  [OP_REMOUNT] = {"remount", "to", STEP_SCAFFOLD},
  [OP_BIND] = {"bind", "nsto", NO_STEP},
  [OP_BIND_TRY] = {"bind-try", "nsto", NO_STEP},
  [OP_MASK] = {"mask", "ts", STEP_MASK},
  [OP_ALLOW] = {"allow", "t", STEP_ROOTFS},
  [OP_SYMLINK] = {"symlink", "st", STEP_DEVICES},
  [OP_DEVPTS] = {"devpts", "to", STEP_DEVICES},
  [OP_PROC] = {"proc", "t", STEP_PROC},
  [OP_BIND_ENTRIES] = {"bind-entries", "sto", STEP_ROOTFS},
  [OP_PIVOT] = {"pivot", "t", STEP_PIVOT},
};
#define OP_COUNT (sizeof OPS / sizeof OPS[0])

static void set_operand(struct mount_entry *entry, char operand, const char *word) {
  if (operand == 'n') entry->step = step_named(word);
  if (operand == 's') entry->source = word;
  if (operand == 't') entry->target = word;
  if (operand == 'o') entry->options = word;
}

static bool parse(struct mount_entry *entry, char ***words, struct text *complaint) {
  const char *name = *++*words;
  if (name == NULL) return COMPLAIN(complaint, "without a value: --mount");
  size_t op = 0;
  while (op < OP_COUNT && strcmp(name, OPS[op].name) != 0) op++;
  if (op == OP_COUNT) return COMPLAIN(complaint, "unknown operation of --mount: %s", name);
  *entry = (struct mount_entry){.op = (enum mount_op)op, .step = OPS[op].step};
  for (const char *operand = OPS[op].operands; *operand != '\0'; operand++) {
    const char *word = *++*words;
    if (word == NULL || *word == '\0') return COMPLAIN(complaint, "too few words: --mount %s", name);
    set_operand(entry, *operand, word);
    if (*operand == 'n' && !is_sandbox_step(entry->step)) return COMPLAIN(complaint, "not a step of a sandbox: %s", word);
  }
  ++*words;
  return true;
}

char **mount_list_add(struct mount_list *list, char **words, struct text *complaint) {
  if (list->count == MAX_MOUNTS) text_set(complaint, "given too often: --mount");
  else if (parse(&list->entries[list->count], &words, complaint)) {
    list->count++;
    return words;
  }
  return NULL;
}

const char *mount_list_name(const struct mount_list *list, struct fault fault) {
  if (fault.mount < 1 || fault.mount > list->count) return NULL;
  const struct mount_entry *entry = &list->entries[fault.mount - 1];
  return entry->op == OP_BIND_ENTRIES ? entry->source : entry->target;
}
