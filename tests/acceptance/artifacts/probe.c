/* What an artifact sees of its own launch.
 *
 * probe show           writes the name of its executable and the variable that names it
 * probe exec           becomes itself through that variable, then shows
 * probe spawn          starts itself through that variable as a child, which shows
 * probe run PROGRAM…   starts a program as its child, which thereby has this artifact as its parent
 * probe exit N         ends with that status
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE"

static int show(void)
{
    char name[4096];
    ssize_t length = readlink("/proc/self/exe", name, sizeof name - 1);
    const char *variable = getenv(VARIABLE);
    name[length < 0 ? 0 : length] = 0;
    printf("exe=%s runtime=%s mark=%s\n", name, variable ? variable : "", MARK);
    return 0;
}

static int spawn(char **words)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execv(words[0], words);
        perror(words[0]);
        _exit(99);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

int main(int count, char **words)
{
    const char *order = count > 1 ? words[1] : "show";
    if (!strcmp(order, "exit"))
        return atoi(words[2]);
    if (!strcmp(order, "run"))
        return spawn(words + 2);
    show();
    fflush(stdout);
    char *again[] = {getenv(VARIABLE), "show", NULL};
    if (!strcmp(order, "exec")) {
        execv(again[0], again);
        perror("exec");
        return 97;
    }
    return strcmp(order, "spawn") ? 0 : spawn(again);
}
