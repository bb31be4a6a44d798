## usage: symbols = bpskmod (bits)
##
## Binary phase-shift keying: +1 for each bit 0, -1 for each bit 1.
##
## The energy of a symbol is 1.

function symbols = bpskmod (bits)
  symbols = 1 - 2 * bits;
endfunction

%!assert (bpskmod ([0 1 1; 1 0 0]), [1 -1 -1; -1 1 1])
%!assert (bpskdemod (bpskmod ([0 1 1 0])), [0 1 1 0])
