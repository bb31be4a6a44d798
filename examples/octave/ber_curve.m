## usage: curve = ber_curve (code, ebn0_db, blocks)
##
## Simulates BLOCKS messages at each of the signal-to-noise ratios EBN0_DB, in
## decibels: a row of structures, see ber_point.

function curve = ber_curve (code, ebn0_db, blocks)
  points = arrayfun (@(ratio) ber_point (code, ratio, blocks), ebn0_db, ...
                     "UniformOutput", false);
  curve = [points{:}];
endfunction

%!test
%! rand ("twister", 8);
%! curve = ber_curve (BCH_setup (7, 4, 1), [-10 5 40], 20);
%! assert (size (curve), [1 3]);
%! assert ([curve.ebn0_db], [-10 5 40]);
%! assert ([curve.blocks], [20 20 20]);
%! assert (curve(1).block_errors > curve(3).block_errors);
%! assert (curve(3).channel_errors, 0);
