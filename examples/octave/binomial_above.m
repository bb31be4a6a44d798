## usage: q = binomial_above (k, n, p)
##
## The chance of more than K successes in N trials of chance P each.
##
## By the incomplete beta function, so that it is exact to rounding also where it
## is very small. K, N and P are scalars or of the same size.

function q = binomial_above (k, n, p)
  [~, k, n, p] = common_size (k, n, p);
  q = double (k < 0);
  inner = k >= 0 & k < n;
  q(inner) = betainc (p(inner), k(inner) + 1, n(inner) - k(inner));
endfunction

%!assert (binomial_above (-1, 5, 0.3), 1)
%!assert (binomial_above (5, 5, 0.3), 0)
%!assert (binomial_above (4, 5, 0.3), 0.3^5, -1e-12)
%!assert (binomial_above (0, 5, 0.3), 1 - 0.7^5, -1e-12)
%!assert (binomial_above (2, 15, 1e-6), 455e-18, -2e-5)
%!assert (binomial_above ([0 1], 2, 0.5), [0.75 0.25], -1e-12)
