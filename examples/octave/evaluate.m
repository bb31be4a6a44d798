## usage: evaluate
## usage: octave-cli evaluate.m [BLOCKS]
##
## The evaluation program: simulates three BCH codes over a range of
## signal-to-noise ratios and prints their error rates beside those of theory.
##
## BLOCKS messages are sent at each ratio, 200 by default; if there is a variable
## `blocks` where the script is run, it is used. The first code is run once more
## with a simpler search for the places of errors, to be compared in a profile;
## its results must be the same. Results depend on nothing but BLOCKS.

addpath (fileparts (mfilename ("fullpath")));
if (! exist ("blocks", "var"))
  blocks = str2double ([argv(); {"200"}]{1});
endif
if (! (blocks >= 1))
  blocks = 200;  # run by other means than by name, with arguments that are not ours
endif

codes = {[15 7 2], [31 21 2], [63 45 3]};
ebn0_db = 0:6;
rates = ber_theory (BCH_setup (15, 7, 2), ebn0_db).uncoded;
for i = 1:numel (codes)
  [curve, code] = bch (blocks, codes{i}, ebn0_db, i);
  printf ("BCH (%d,%d), corrects %d, %d words at each ratio\n", codes{i}, blocks);
  printf ("%s\n", ber_table (code, curve));
  rates(end+1, :) = [curve.coded_errors] / (blocks * code.k);
  curves{i} = curve;
endfor

again = bch (blocks, codes{1}, ebn0_db, 1, @BCH_search);
if (! isequal (again, curves{1}))
  error ("evaluate: the two ways to search for errors gave different results");
endif
printf ("The search by trying every element gave the same results for (15,7).\n\n");

printf ("Wrong message bits: u without a code, in theory; a (15,7), b (31,21), c (63,45)\n\n");
printf ("%s", ber_plot (ebn0_db, rates, "uabc"));

%!test
%! blocks = 5;
%! text = evalc ("evaluate");
%! for part = {"BCH (15,7)", "BCH (31,21)", "BCH (63,45)", "gave the same results", "1e-04  +"}
%!   assert (! isempty (strfind (text, part{1})));
%! endfor
%! assert (numel (strfind (text, "\n     6.0")), 3);
