## usage: x = boxmuller (rows, columns)
##
## Independent standard normal numbers, two from each pair of uniform ones.
##
## Box & Muller, "A note on the generation of random normal deviates", 1958. The
## uniform numbers are those of rand, so that seeding it repeats the result.

function x = boxmuller (rows, columns)
  pairs = ceil (rows * columns / 2);
  radius = sqrt (-2 * log (rand (1, pairs)));
  angle = 2 * pi * rand (1, pairs);
  x = [radius .* cos(angle), radius .* sin(angle)];
  x = reshape (x(1:rows * columns), rows, columns);
endfunction

%!assert (size (boxmuller (3, 5)), [3 5])
%!assert (size (boxmuller (0, 4)), [0 4])
%!test # repeated by seeding, and the two of a pair are not the same
%! rand ("twister", 7);
%! a = boxmuller (1, 6);
%! rand ("twister", 7);
%! assert (boxmuller (1, 6), a);
%! assert (numel (unique (a)), 6);
%!test # moments within four standard errors
%! rand ("twister", 11);
%! N = 200000;
%! x = boxmuller (1, N);
%! assert (mean (x), 0, 4 / sqrt (N));
%! assert (mean (x .^ 2), 1, 4 * sqrt (2 / N));
%! assert (mean (x .^ 3), 0, 4 * sqrt (15 / N));
%! assert (mean (x .^ 4), 3, 4 * sqrt (96 / N));
%! assert (mean (x(1:N/2) .* x(N/2+1:N)), 0, 4 / sqrt (N / 2));
%!test # distribution: Kolmogorov and Smirnov's distance, one in 10^4 above 2.23
%! rand ("twister", 12);
%! N = 20000;
%! distribution = erfc (-sort (boxmuller (1, N)) / sqrt (2)) / 2;
%! distance = max (abs (distribution - ((1:N) - 0.5) / N)) + 0.5 / N;
%! assert (distance * sqrt (N) < 2.23);
