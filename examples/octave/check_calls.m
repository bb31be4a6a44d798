## usage: check_calls ()
## usage: check_calls (blocks, parameters, search)
##
## Holds the calls that a profiler counts in bch against those there must be, and
## fails with an error where they differ.
##
## Whatever `profile` is in this session is used, by its documented interface; what
## it had recorded is cleared. The arguments are those of bch, 20, [15 7 2] and
## @BCH_chien by default. With w = blocks times ratios, the number of words
## received, a code's n, k and t fix the calls of many functions and arcs; others
## are tied to each other, or to the results: each word told to be beyond
## correction is one call of `error`, which leaves two functions at once.

function check_calls (blocks = 20, parameters = [15 7 2], search = @BCH_chien)
  ebn0_db = 0:3;
  profile clear
  profile on
  unwind_protect
    [curve, code] = bch (blocks, parameters, ebn0_db, 1, search);
  unwind_protect_cleanup
    profile off
  end_unwind_protect
  arcs = arcs_of (profile ("info"));
  expected = expected_arcs (code, blocks, curve);
  for row = expected'
    check_arc (arcs, row{1}, row{2});
  endfor
  check_ties (arcs, code);
  printf ("(%d,%d), %s: %d arcs have the calls they must have\n", code.n, code.k, ...
          func2str (search), rows (expected));
endfunction

## Rows of {"caller -> callee", calls}.
function expected = expected_arcs (code, blocks, curve)
  points = numel (curve);
  words = blocks * points;
  expected = {
    "bch -> BCH_setup",                      1;
    "BCH_setup -> BCH_generator",            1;
    "GF_setup>powers_of_alpha -> GF_setup>times_alpha", code.n;
    "BCH_setup>parity_row -> GF_polydiv",    code.k;
    "ber_point -> ber_point>transmit",       2 * points;
    "awgn_channel -> boxmuller",             2 * points;
    "BCH_decode -> BCH_syndrome",            words;
    "BCH_syndrome -> GF_polyeval",           words;
    "BCH_syndrome -> GF_mul",                words * code.t;
    "BCH_generator>common_multiple -> GF_polygcd", 2 * code.t;
    "* -> error",                            sum([curve.told])};
  if (isequal (code.search, @BCH_chien))
    expected = [expected; {
      "GF_polyeval -> GF_mul",               words * code.n;
      "GF_polyeval -> GF_add",               words * code.n}];
  endif
endfunction

function check_arc (arcs, arc, calls)
  if (count (arcs, arc) != calls)
    error ("check_calls: %s has %d calls, and must have %d", arc, count (arcs, arc), calls);
  endif
endfunction

## Numbers that depend on the noise, but not independently.
function check_ties (arcs, code)
  check_arc (arcs, "BCH_berlekamp -> BCH_berlekamp>discrepancy", ...
             2 * code.t * count (arcs, "BCH_decode -> BCH_berlekamp"));
  check_arc (arcs, "GF_div -> GF_mul", count (arcs, "GF_div -> GF_inv"));
  check_arc (arcs, "BCH_chien -> GF_mul", count (arcs, "BCH_chien -> BCH_chien>sum_of"));
  check_arc (arcs, "BCH_berlekamp>discrepancy -> GF_mul", ...
             count (arcs, "BCH_berlekamp>discrepancy -> GF_add"));
endfunction

function calls = count (arcs, arc)
  calls = 0;
  if (isKey (arcs, arc))
    calls = arcs(arc);
  endif
endfunction

## Calls by "caller -> callee", and by "* -> callee" from all callers together.
function arcs = arcs_of (info)
  arcs = containers.Map ("KeyType", "char", "ValueType", "double");
  add_nodes (arcs, info.Hierarchical, "", {info.FunctionTable.FunctionName});
endfunction

## A map is a handle: what is added here is seen by the caller.
function add_nodes (arcs, nodes, caller, names)
  for i = 1:numel (nodes)
    callee = names{nodes(i).Index};
    for from = {caller, "*"}
      arc = [from{1}, " -> ", callee];
      arcs(arc) = count (arcs, arc) + nodes(i).NumCalls;
    endfor
    add_nodes (arcs, nodes(i).Children, callee, names);
  endfor
endfunction

%!test
%! text = evalc ("check_calls (10)");
%! assert (! isempty (strfind (text, "13 arcs have the calls they must have")));
%!test
%! evalc ("check_calls (5, [31 16 3])");
%! evalc ("check_calls (5, [15 7 2], @BCH_search)");
%!test # an error raised that the results do not show is noticed
%! search = @(code, locator) numel (evalc ("error ('x')", "1;")) + 1;
%! fail ("check_calls (3, [7 4 1], search)", "error has [0-9]+ calls, and must have 0");
