# A small process that runs a program and reports what the kernel measured of it.
#
# The kernel starts a new program's peak of memory at that of the process that made it, so whoever makes it must be small:
# this one has two pages. It is started with the words
#
#     launcher INPUT FILE WORD...
#
# and runs FILE with the words as its arguments and INPUT as its standard input. Its own standard input is the pipe for its
# report of 192 bytes: errno of what kept the program from running, or 0; the status of wait4; when the program was started
# and when it had ended, as two timespecs of CLOCK_MONOTONIC; its rusage.
#
# Made by: as launcher.s && objcopy -O binary -j .text; the bytes are in launcher.rs.
        .globl  _start
        .set    errno, 0
        .set    status, 8
        .set    begun, 16
        .set    ended, 32
        .set    usage, 48
        .set    size, 192
_start: mov     %rsp, %rbx              # the number of words, then the words
        mov     (%rbx), %rax
        lea     16(%rbx,%rax,8), %r12   # the environment
        sub     $size, %rsp
        mov     %rsp, %r13              # the report
        xor     %eax, %eax
        mov     %r13, %rdi
        mov     $size/8, %ecx
        rep stosq
        mov     $112, %eax              # setsid(): a group that can be killed, and no terminal to wait for
        syscall
        mov     $157, %eax              # prctl(PR_SET_PDEATHSIG, SIGKILL): ends with the process that started it
        mov     $1, %edi
        mov     $9, %esi
        syscall
        mov     $228, %eax              # clock_gettime(CLOCK_MONOTONIC, begun)
        mov     $1, %edi
        lea     begun(%r13), %rsi
        syscall
        mov     $58, %eax               # vfork()
        syscall
        test    %rax, %rax
        jz      child
        js      failed
        mov     %rax, %r14
again:  mov     $61, %eax               # wait4(child, status, 0, usage)
        mov     %r14, %rdi
        lea     status(%r13), %rsi
        xor     %edx, %edx
        lea     usage(%r13), %r10
        syscall
        cmp     $-4, %rax               # EINTR
        je      again
        mov     $228, %eax              # clock_gettime(CLOCK_MONOTONIC, ended)
        mov     $1, %edi
        lea     ended(%r13), %rsi
        syscall
report: mov     $1, %eax                # write(0, report, size)
        xor     %edi, %edi
        mov     %r13, %rsi
        mov     $size, %edx
        syscall
        xor     %edi, %edi
        jmp     exit
failed: neg     %rax
        mov     %rax, errno(%r13)
        jmp     report
child:  mov     $157, %eax              # prctl(PR_SET_PDEATHSIG, SIGKILL)
        mov     $1, %edi
        mov     $9, %esi
        syscall
        mov     $3, %eax                # close(0): the program gets no report to write
        xor     %edi, %edi
        syscall
        mov     $2, %eax                # open(INPUT, O_RDONLY), which takes the place of what was closed
        mov     16(%rbx), %rdi
        xor     %esi, %esi
        syscall
        test    %rax, %rax
        js      unable
        mov     $59, %eax               # execve(FILE, WORDS, environment)
        mov     24(%rbx), %rdi
        lea     32(%rbx), %rsi
        mov     %r12, %rdx
        syscall
unable: neg     %rax                    # the memory is the parent's
        mov     %rax, errno(%r13)
        mov     $127, %edi
exit:   mov     $60, %eax
        syscall
