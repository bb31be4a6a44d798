## usage: bits = random_bits (rows, columns)
##
## Zeros and ones of equal chance, by rand.

function bits = random_bits (rows, columns)
  bits = double (rand (rows, columns) < 0.5);
endfunction

%!assert (size (random_bits (2, 3)), [2 3])
%!test # about as many ones as zeros, and nothing else
%! rand ("twister", 5);
%! bits = random_bits (100, 100);
%! assert (unique (bits)', [0 1]);
%! assert (sum (bits(:)), 5000, 200);
