## Copyright (C) 2026 The Treering developers
##
## Licensed under the MIT licence; see the file COPYING.

## -*- texinfo -*-
## @deftypefn  {} {} treering on
## @deftypefnx {} {} treering on @var{kind} @var{option} @dots{}
## @deftypefnx {} {} treering off
## @deftypefnx {} {} treering resume
## @deftypefnx {} {} treering clear
## @deftypefnx {} {} treering info @var{kind} @var{option} @dots{}
## @deftypefnx {} {@var{S} =} treering ("info")
## @deftypefnx {} {@var{S} =} treering ("status")
## @deftypefnx {} {} treering view
## @deftypefnx {} {} treering view @var{page}
## @deftypefnx {} {} treering save @var{file}
## Profile the code that runs from now on.
##
## @code{on} starts a new profile; what was recorded before is forgotten.
## @var{kind} is @code{graph}, the default, for a profile with callers and
## callees, or @code{flat} for one record of each function.  Options:
##
## @table @code
## @item -lines
## Record hits and time of each line.
## @item -args
## Record costs by the size of the largest argument.
## @item -operators
## Record operators as well; this costs more, for Octave builds a text for
## each call of any function.
## @item -memory
## Record what each function allocates itself: how many blocks and bytes, how
## many bytes of these are not freed yet, and the most at any time.
## @item -only @var{pattern}
## Record functions only whose name fits, with @code{*} and @code{?}; may be
## given several times.  The time of others is their callers'.
## @item -ignore @var{pattern}
## Leave functions out.
## @item -output @var{file}
## Write the profile to a file when Octave ends.  It can be read while it
## grows, and after a crash, with @code{treering report @var{file}}.
## @item -detail @var{level}
## As in @sc{matlab}: @code{builtin}, the default, or @code{mmex} to leave out
## what is part of the interpreter, whose time is its callers'.
## @end table
##
## The options @code{-timer real} and @code{-nohistory} of @sc{matlab} are
## accepted; those that ask for a history of calls or for other clocks are
## answered with what to do in place of them.
##
## Forked processes, and the workers that @code{parcellfun} and
## @code{pararrayfun} of the package parallel start while recording, are part
## of the profile: their calls and times are added.  Workers that wait are ended
## when recording begins and ends.
##
## @code{off} stops, @code{resume} goes on with the same profile and
## @code{clear} forgets it.  There is one profile: a kind behind @code{off} is
## allowed and changes nothing.  @code{save} writes the profile to a file that
## the program @code{treering} reads.
##
## @code{view} stops and opens a page that shows the profile in the browser:
## flame graph, callers and callees, source, and more.  It is one file, @var{page}
## or one in the folder for temporary files, whose name is printed; it needs no
## network and can be mailed.  The program @code{treering} makes it.  @code{viewer},
## as in @sc{matlab}, is the same.
##
## @code{info} stops and prints two tables: the functions, and the call graph.
## With @var{kind} @code{flat} it prints the first only.  The row
## @code{#toplevel} is what no function took while recording: the prompt,
## waiting for what is typed included, or the script above; it is in no
## percentage and no sum.  Options:
##
## @table @code
## @item -statistics
## Also as an option of @code{on}, for each @code{info} that follows.
## Print the mean, least and greatest time of single calls, their standard
## deviation, and as @code{calm} the mean of calls that took less than twice
## the least until then: of each function and of each arc of the graph.
## @item -sort @var{key}
## Sort the functions by @code{self} (the default), @code{total}, @code{calls}
## or @code{name}.
## @item -top @var{number}
## Print at most this many functions.
## @end table
##
## Lines and sizes of arguments are printed where they were recorded; with
## @code{-lines} and @code{-args} a sentence tells that they were not.
##
## With an output argument @code{info} goes on recording and returns a
## structure with the fields of @code{profile ("info")} and more.
## @code{FunctionTable} has @code{SelfTime}, @code{CumulativeTime} (with all
## that was called), @code{Kind}, @code{FileName} and @code{Line}, with
## @code{-lines} @code{ExecutedLines} (rows of line, hits, self time and total
## time), with @code{-args} @code{ArgumentSizes} (rows of least size, calls and
## total time), with @code{-memory} @code{Allocations}, @code{AllocatedBytes}, @code{LiveBytes}
## and @code{PeakBytes}, and the statistics of single calls @code{NumTimed},
## @code{MeanTime}, @code{CalmMeanTime}, @code{LeastTime}, @code{GreatestTime}
## and @code{StdTime}, which are NaN where there were too few calls.
## @code{Arcs}, from callers to callees, has @code{Caller}, @code{Callee},
## @code{NumCalls}, @code{TotalTime} and the same statistics.
## @code{TopLevel} has @code{SelfTime}, which is in @code{#toplevel} above, and
## @code{Arcs} to what the top level called.  Times are in seconds, without the
## cost of measuring; but least, greatest and deviation are as measured.
##
## While these commands run nothing is recorded.
## @seealso{profile, treering_native_profile, profshow, profexplore, profexport}
## @end deftypefn

function retval = treering (command, varargin)

  if (nargin < 1 || ! ischar (command) || ! iscellstr (varargin))
    print_usage ();
  endif

  ## As in MATLAB, options may come first: profile -memory on.
  if (strncmp (command, "-", 1))
    at = find (strcmp (varargin, "on"), 1);
    varargin = [{command}, varargin];
    command = "on";
    varargin(at + 1) = [];
  endif

  home = fileparts (mfilename ("fullpath"));
  switch (command)
    case "on"
      __treering__ ("on", "-home", home, varargin{:});
      __treering_workers__ (home, varargin);
    case "resume"
      __treering__ ("resume", varargin{:});
      __treering_workers__ (home);
    case {"off", "clear", "save"}
      __treering__ (command, varargin{:});
      if (strcmp (command, "off"))
        __treering_workers__ ();
      endif
    case "status"
      retval = __treering__ ("status", varargin{:});
    case "info"
      if (nargout > 0)
        retval = __treering__ ("details", varargin{:});
      else
        puts (__treering__ ("print", varargin{:}));
        __treering_workers__ ();
      endif
    case {"view", "viewer"}
      __treering__ ("off");
      __treering_workers__ ();
      __treering_view__ (varargin{:});
    case {"report", "plot"}
      error ("treering: %s is of MATLAB; type: profile info, or profile view, or profexport (\"FOLDER\")", command);
    otherwise
      error ("Octave:undefined-function", "treering: unknown command '%s'", command);
  endswitch

endfunction

## Has the program treering make a page of the profile, and open it where there is a display.
function __treering_view__ (page = "", varargin)
  if (! isempty (varargin))
    error ("treering: view takes the name of one file");
  endif
  name = tempname (tempdir (), "treering-");
  saved = [name, ".trg"];
  if (isempty (page))
    page = [name, ".html"];
  endif
  __treering__ ("save", saved);
  program = __treering_program__ ();
  if (isempty (program))
    error (["treering: the program treering, which makes pages, is not on the path; install it: cargo install --path crates/treering\n" ...
            "the profile is in %s; in a shell: treering view %s"], saved, __treering_word__ (saved));
  endif
  words = cellfun (@__treering_word__, {program, saved, page}, "UniformOutput", false);
  [status, told] = system (sprintf ("%s view %s -o %s 2>&1", words{:}), true);
  if (status != 0)
    error ("treering: no page was made, the profile is in %s\n%s", saved, strtrim (told));
  endif
  unlink (saved);
  puts (told);
endfunction

## A text as a word of a shell's command.
function word = __treering_word__ (text)
  word = ["'", strrep(text, "'", "'\\''"), "'"];
endfunction

## Where the program is: beside the library, as cargo builds them, or on the path of programs; empty if it is nowhere.
function program = __treering_program__ ()
  library = canonicalize_file_name (which ("__treering__"));
  program = fullfile (fileparts (library), "treering");
  if (exist (program, "file") != 2)
    program = file_in_path (getenv ("PATH"), "treering");
  endif
endfunction

## Has Octaves that are started from now on record if they are workers of the package parallel, or
## no longer.  Workers that wait are ended: the next ones are started as is right then.
function __treering_workers__ (home, words)
  persistent last = {};
  persistent folder = "";
  folders = strsplit (getenv ("OCTAVE_PATH"), pathsep ());
  folders(strcmp (folders, folder) | cellfun (@isempty, folders)) = [];
  if (nargin > 1)
    last = words;
  endif
  if (nargin > 0)
    output = __treering__ ("status").File;
    options = last;
    at = find (strcmp (options, "-output"));
    options([at, at + 1]) = [];
    library = fileparts (which ("__treering__"));
    setenv ("TREERING_OCTAVE_WORKER", strjoin ([{library}, options, {"-output", output, "-home", home}], "\n"));
    folder = fullfile (home, "worker");
    folders{end+1} = folder;
  else
    unsetenv ("TREERING_OCTAVE_WORKER");
  endif
  setenv ("OCTAVE_PATH", strjoin (folders, pathsep ()));
  if (any (exist ("parcellfun_set_nproc") == [2, 3]) && ! isempty (which ("__parcellfun_set_nproc_used__")))
    parcellfun_set_nproc (0);
  endif
endfunction


%!function r = __treering_test_inner__ (n)
%!  r = sum (1:n);
%!endfunction

%!test <*1>
%! treering on
%! for i = 1:7
%!   __treering_test_inner__ (i);
%! endfor
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! at = find (strcmp (names, "__treering_test_inner__"));
%! below = find (strcmp (names, "sum"));
%! assert (S.FunctionTable(at).NumCalls, 7);
%! assert (S.FunctionTable(at).CumulativeTime >= S.FunctionTable(at).SelfTime);
%! arc = S.Arcs([S.Arcs.Caller] == at & [S.Arcs.Callee] == below);
%! assert (arc.NumCalls, 7);

%!test
%! ## Nothing of what was before is left, and resuming adds.
%! treering on
%! sin (1);
%! treering off
%! treering on
%! cos (1);
%! treering off
%! treering resume
%! cos (1);
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! assert (! any (strcmp (names, "sin")));
%! assert (S.FunctionTable(strcmp (names, "cos")).NumCalls, 2);

%!test
%! treering on -only co*
%! sin (1); cos (1);
%! treering off
%! S = treering ("info");
%! assert ({S.FunctionTable.FunctionName}, {"cos"});

%!test
%! treering clear
%! S = treering ("info");
%! assert (size (S.FunctionTable), [0, 1]);

%!test
%! ## Errors leave a balanced profile.
%! treering on
%! try
%!   cellfun (@(x) error ("caught"), {1, 2});
%! catch
%! end_try_catch
%! sin (1);
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! at = find (strcmp (names, "sin"));
%! assert (! any ([S.Arcs.Callee] == at & [S.Arcs.Caller] == find (strcmp (names, "cellfun"))));

%!test
%! ## Memory belongs to the function that took it until it is freed, by any function.
%! treering on -memory
%! kept = ones (1, 1e5);
%! dropped = zeros (1, 2e5) + 1;
%! dropped = [];
%! treering off
%! S = treering ("info");
%! row = @(name) S.FunctionTable(strcmp ({S.FunctionTable.FunctionName}, name));
%! assert (row ("ones").LiveBytes >= 8e5 && row ("ones").LiveBytes < 8.1e5);
%! assert (row ("zeros").LiveBytes < 1e5);
%! assert (row ("zeros").PeakBytes >= 1.6e6);
%! assert (row ("zeros").AllocatedBytes >= 1.6e6);

%!test
%! ## Statistics of an arc are those of its calls.
%! treering on
%! for i = [10, 2000]
%!   __treering_test_inner__ (i);
%! endfor
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! inner = find (strcmp (names, "__treering_test_inner__"));
%! arc = S.Arcs([S.Arcs.Caller] == inner);
%! assert ([arc.NumTimed], 2);
%! assert (arc.LeastTime <= arc.GreatestTime && isfinite (arc.StdTime));
%! spread = (arc.GreatestTime - arc.LeastTime) / sqrt (2);
%! assert (arc.StdTime, spread, 1e-9 + 1e-3 * spread);
%! top = S.TopLevel.Arcs([S.TopLevel.Arcs.Callee] == inner);
%! assert ([top.NumCalls], 2);

%!test
%! ## What is printed is chosen by words.
%! treering on
%! __treering_test_inner__ (3);
%! treering off graph
%! text = evalc ("treering info flat -sort name");
%! assert (any (strfind (text, "#toplevel")) && ! any (strfind (text, "call graph")));
%! text = evalc ("treering info graph -statistics");
%! assert (any (strfind (text, "call graph")) && any (strfind (text, "calm ms")));

%!error <Invalid call> treering ()
%!error <unknown option 'grap' of info> treering ("info", "grap")
%!error <-sort takes self, total, calls or name> treering ("info", "-sort", "time")
%!error <tell what to print> S = treering ("info", "flat")
%!error <no other word than graph or flat> treering ("off", "all")
%!error <the name of one file> treering ("view", "a.html", "b.html")
%!error <unknown option> treering ("on", "-surprise")
%!error <unknown command> treering ("surprise")
