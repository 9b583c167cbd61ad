#include "supervise/masked-logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/files.h"

#define VARIABLE_PREFIX "TASKMILL_MASK_"

extern char **environ;

/* The text of a variable, in hexadecimal; NULL for a variable of the task. */
static char *text_of(char *variable) {
  if (strncmp(variable, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) != 0) return NULL;
  char *equals = strchr(variable, '=');
  return equals == NULL ? NULL : equals + 1;
}

/* A digit as JavaScript writes it; negative for anything else. */
static int digit_of(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool decode(const char *hex, size_t length, unsigned char *text) {
  for (size_t i = 0; i < length; i++) {
    int high = digit_of(hex[2 * i]);
    int low = digit_of(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    text[i] = (unsigned char)(high * 16 + low);
  }
  return true;
}

/* Whether there are as many texts as there should be, and none is too long. */
static bool measure(int64_t count, size_t *bytes) {
  *bytes = 0;
  for (char **at = environ; *at != NULL; at++) {
    const char *hex = text_of(*at);
    if (hex == NULL) continue;
    size_t length = strlen(hex);
    if (length == 0 || length % 2 != 0 || length / 2 > MASK_MAX_TEXT_BYTES) return false;
    *bytes += length / 2;
    if (*bytes > MASK_MAX_BYTES) return false;
    count--;
  }
  return count == 0;
}

/* Takes the variables away, and wipes them: a launcher outlives the start of its task. */
static bool take_texts(struct mask_texts *texts) {
  static unsigned char text[MASK_MAX_TEXT_BYTES];
  bool is_sound = true;
  char **kept = environ;
  for (char **at = environ; *at != NULL; at++) {
    char *hex = text_of(*at);
    if (hex == NULL) {
      *kept++ = *at;
      continue;
    }
    size_t length = strlen(hex) / 2;
    is_sound = is_sound && decode(hex, length, text);
    if (is_sound) mask_texts_add(texts, text, length);
    explicit_bzero(hex, 2 * length);
  }
  *kept = NULL;
  explicit_bzero(text, sizeof text);
  return is_sound;
}

static struct fault masks_fault(int error) { return (struct fault){.step = STEP_MASKS, .error = error}; }

static struct fault read_texts(struct mask_texts *texts, int64_t count) {
  size_t bytes;
  if (!measure(count, &bytes)) return masks_fault(EINVAL);
  if (!mask_texts_start(texts, bytes)) return masks_fault(ENOMEM);
  if (!take_texts(texts)) return masks_fault(EINVAL);
  return mask_texts_finish(texts) ? no_fault() : masks_fault(ENOMEM);
}

/* `group` as for task_dir_open_logs. Our end never blocks. */
static struct fault open_stream(struct masked_stream *stream, const struct mask_texts *texts, int *task_fd, int64_t group) {
  int ends[2];
  if (!masker_start(&stream->masker, texts)) return masks_fault(ENOMEM);
  if (pipe2(ends, O_CLOEXEC) != 0) return fault_at(STEP_MASKS);
  stream->from_fd = ends[0];
  stream->log_fd = *task_fd;
  *task_fd = ends[1];
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return fault_at(STEP_MASKS);
  return group == ABSENT || share_with_group(ends[1], (gid_t)group) ? no_fault() : fault_at(STEP_MASKS);
}

struct fault masked_logs_open(struct masked_logs *logs, const struct arguments *arguments, struct task_dir *dir) {
  if (arguments->mask_count == ABSENT) return no_fault();
  struct fault fault = read_texts(&logs->texts, arguments->mask_count);
  if (!is_fault(fault)) fault = open_stream(&logs->streams[0], &logs->texts, &dir->task_stdout_fd, arguments->sandbox_uid);
  if (!is_fault(fault)) fault = open_stream(&logs->streams[1], &logs->texts, &dir->task_stderr_fd, arguments->sandbox_uid);
  return fault;
}

void masked_logs_close_ends(const struct masked_logs *logs, const struct task_dir *dir) {
  if (logs->streams[0].from_fd != ABSENT) close(dir->task_stdout_fd);
  if (logs->streams[1].from_fd != ABSENT) close(dir->task_stderr_fd);
}

static void close_stream(struct masked_stream *stream) {
  close(stream->from_fd);
  stream->from_fd = ABSENT;
}

/* Where a log takes no more, the task learns it as if it wrote there itself: its next write fails. */
static bool keep(struct masked_stream *stream) {
  if (write_all(stream->log_fd, (const char *)stream->masker.out, stream->masker.out_bytes, AT_END)) return true;
  close_stream(stream);
  return false;
}

/* Bytes that were read, at most `limit`; 0 if there are none, or the stream is closed now. */
static size_t read_some(struct masked_stream *stream, size_t limit) {
  ssize_t got = read(stream->from_fd, masker_room(&stream->masker), limit < MASK_CHUNK_BYTES ? limit : MASK_CHUNK_BYTES);
  if (got > 0) {
    masker_push(&stream->masker, (size_t)got);
    return keep(stream) ? (size_t)got : 0;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  masker_end(&stream->masker);
  if (keep(stream)) close_stream(stream);
  return 0;
}

void masked_stream_read(struct masked_stream *stream) { read_some(stream, MASK_CHUNK_BYTES); }

/* A process that is no part of the task may have the other end, too, and write on. So only what is there counts. */
static void finish(struct masked_stream *stream) {
  int there = 0;
  if (ioctl(stream->from_fd, FIONREAD, &there) != 0) there = 0;
  for (size_t left = (size_t)there; left > 0 && stream->from_fd != ABSENT;) {
    size_t got = read_some(stream, left);
    if (got == 0) break;
    left -= got;
  }
  if (stream->from_fd == ABSENT) return;
  masker_end(&stream->masker);
  if (keep(stream)) close_stream(stream);
}

void masked_logs_finish(struct masked_logs *logs) {
  for (int i = 0; i < 2; i++)
    if (logs->streams[i].from_fd != ABSENT) finish(&logs->streams[i]);
}
