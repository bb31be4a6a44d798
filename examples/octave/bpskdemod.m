## usage: bits = bpskdemod (symbols)
##
## Hard decision on each received symbol: 1 below zero, 0 else.

function bits = bpskdemod (symbols)
  bits = double (symbols < 0);
endfunction

%!assert (bpskdemod ([0.3 -0.1; -2 0]), [0 1; 1 0])
%!assert (class (bpskdemod (1)), "double")
