/* Preloaded into the processes of a case: says which line of which script an exec comes from.
 *
 * The verdict of a case never depends on this file: it is read from the kernel's record. This only finds the line.
 * bash exports its own counters, so the number is the one that bash itself would print in an error message, taken
 * in the very process that is about to become the program.
 *
 * Records are appended to the file named by TRUTH_RECORD, fields separated by NUL, each record ended by one
 * write(2) so that processes do not mix. A record starts with its length in decimal.
 *   script  PID PATH CONTENT             a shell was started on a script file
 *   exec    PID PPID SOURCE LINE ARGV..  a bash process calls execve
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_SCRIPT = 1 << 16, LARGEST_RECORD = 1 << 20 };

static char record_path[PATH_MAX];

struct record {
    char *bytes;
    size_t length;
};

static void add(struct record *record, const char *bytes, size_t length)
{
    if (record->length + length + 1 > LARGEST_RECORD)
        length = LARGEST_RECORD - record->length - 1;
    memcpy(record->bytes + record->length, bytes, length);
    record->length += length;
    record->bytes[record->length++] = '\0';
}

static void add_text(struct record *record, const char *text)
{
    add(record, text, strlen(text));
}

static void add_number(struct record *record, long number)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    add_text(record, text);
}

static void append(const struct record *record)
{
    int file = open(record_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    char *whole = malloc(record->length + 32);
    if (whole) {
        int head = snprintf(whole, 32, "%zu", record->length) + 1;
        memcpy(whole + head, record->bytes, record->length);
        ssize_t written = write(file, whole, (size_t)head + record->length);
        (void)written;
        free(whole);
    }
    close(file);
}

static int is_shell(const char *name)
{
    const char *base = strrchr(name, '/');
    base = base ? base + 1 : name;
    return !strcmp(base, "bash") || !strcmp(base, "sh") || !strcmp(base, "dash");
}

static void record_script(const char *path)
{
    struct stat status;
    char *content = NULL;
    if (stat(path, &status) || !S_ISREG(status.st_mode) || status.st_size > LARGEST_SCRIPT)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    content = malloc((size_t)status.st_size + 1);
    ssize_t length = content ? read(file, content, (size_t)status.st_size) : -1;
    close(file);
    struct record record = {malloc(LARGEST_RECORD), 0};
    if (record.bytes && length >= 0) {
        add_text(&record, "script");
        add_number(&record, getpid());
        add_text(&record, path);
        add(&record, content, (size_t)length);
        append(&record);
    }
    free(record.bytes);
    free(content);
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
    (void)environment;
    const char *path = getenv("TRUTH_RECORD");
    if (!path || strlen(path) >= sizeof record_path)
        return;
    strcpy(record_path, path);
    if (argc < 2 || !is_shell(argv[0]))
        return;
    for (int index = 1; index < argc; index++) {
        if (!strcmp(argv[index], "-c"))
            return;
        if (strchr(argv[index], '/') || strchr(argv[index], '.')) {
            record_script(argv[index]);
            return;
        }
    }
}

static void record_exec(char *const argv[])
{
    int (*line)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "executing_line_number");
    char *(*value)(const char *) = (char *(*)(const char *))dlsym(RTLD_DEFAULT, "get_string_value");
    if (!record_path[0] || !line || !value)
        return;
    struct record record = {malloc(LARGEST_RECORD), 0};
    if (!record.bytes)
        return;
    const char *source = value("BASH_SOURCE");
    char resolved[PATH_MAX];
    if (source && *source && realpath(source, resolved))
        source = resolved;
    add_text(&record, "exec");
    add_number(&record, getpid());
    add_number(&record, getppid());
    add_text(&record, source ? source : "");
    add_number(&record, line());
    for (size_t index = 0; argv[index]; index++)
        add_text(&record, argv[index]);
    append(&record);
    free(record.bytes);
}

int execve(const char *path, char *const argv[], char *const environment[])
{
    static int (*next)(const char *, char *const[], char *const[]);
    if (!next)
        next = (int (*)(const char *, char *const[], char *const[]))dlsym(RTLD_NEXT, "execve");
    record_exec(argv);
    return next(path, argv, environment);
}
