/* plain: no MPI. Prints a line on each stream and ends with status 7. */
#include <stdio.h>

int main(void)
{
    puts("plain: out");
    fputs("plain: err\n", stderr);
    return 7;
}
