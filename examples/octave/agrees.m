## usage: yes = agrees (count, trials, chance)
##
## Whether COUNT successes in TRIALS trials are believable, for a CHANCE each.
##
## Not believed is a count as far or farther out on its side than would happen
## less often than once in 31574 times, which for a normal distribution is four
## standard deviations. The binomial distribution is used as it is, so that the
## answer also holds where only few successes, or none, are expected.

function yes = agrees (count, trials, chance)
  limit = erfc (4 / sqrt (2)) / 2;
  as_many = binomial_above (count - 1, trials, chance);
  as_few = binomial_above (trials - count - 1, trials, 1 - chance);
  yes = as_many >= limit & as_few >= limit;
endfunction

%!assert (agrees ([500 562 565 438 435], 1000, 0.5), logical ([1 1 0 1 0]))
%!assert (agrees (0, 100, 0.01), true)
%!assert (agrees (0, 2000, 0.01), false)
%!assert (agrees ([0 1 2], 1000, 1e-6), logical ([1 1 0]))
%!assert (agrees ([0 1], 10, 0), logical ([1 0]))
%!assert (agrees ([10 9], 10, 1), logical ([1 0]))
