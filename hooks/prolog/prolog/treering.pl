/*  Treering for SWI-Prolog: profiles a goal.

    Licensed under MIT or Apache-2.0, as Treering is.
*/

:- module(treering,
          [ treering/1,                 % :Goal
            treering/2,                 % :Goal, :Options
            treering_mark/1             % +Name
          ]).
:- use_module(library(aggregate)).
:- use_module(library(apply)).
:- use_module(library(assoc)).
:- use_module(library(error)).
:- use_module(library(lists)).
:- use_module(library(option)).
:- use_module(library(pairs)).
:- use_module(library(prolog_wrap)).
:- if(exists_source(library(prolog_profile))).
:- use_module(library(prolog_profile), [profile_data/1]).
:- else.
:- use_module(library(statistics), [profile_data/1]).
:- endif.
:- autoload(library(process), [process_create/3, process_kill/2, process_wait/2]).
:- autoload(library(shlib), [load_foreign_library/1]).

:- set_prolog_flag(generate_debug_info, false).

:- meta_predicate
    treering(0),
    treering(0, :),
    run(0, -).

/** <module> Profile a goal

?- treering(queens(8, Qs)).                     % SWI-Prolog's own profiler, the whole tree
?- treering(queens(8, Qs), [ports(true)]).      % exact ports of the program's predicates

The goal is called as by once/1. What was recorded is written to a file, which the program
`treering` reads, and a table of it is printed. The options are described in docs/prolog.md.
*/

%!  treering(:Goal) is semidet.
%!  treering(:Goal, :Options) is semidet.
%
%   Calls Goal as once/1 does, and profiles it. Options:
%
%     * ports(Boolean)
%       Counts calls, exits, redos, fails, exceptions and cuts exactly, by wrapping predicates.
%       Needs the library of Treering. The default is `false`.
%     * clock(Clock)
%       One of `cpu` (default) and `wall`.
%     * output(File)
%       The file to write, treering.trg by default.
%     * recursion(Rule)
%       With ports(true): which activations share a node of the tree: `direct` (default), `full`
%       or `swi_classic`.
%     * modules(Modules), predicates(Predicates)
%       With ports(true): what is wrapped: all predicates of these modules, and these predicates.
%       The default is all predicates of the program's own modules.
%     * except(Predicates)
%       With ports(true): what is not wrapped.
%     * report(Report)
%       What is printed at the end: `summary` (default), a table of predicates, `none`, or `callgraph`, `tree` or `flat` of
%       the program `treering`.
%     * top(Count), cumulative(Boolean)
%       How many lines the table has, and whether it is sorted by the time with callees; as in
%       profile/2.

treering(Goal) :-
    treering(Goal, treering:[]).

treering(Goal, _:Options) :-
    settings(Options, Settings),
    must_be(callable, Goal),
    refuse_nested,
    must_be_writable(Settings.output),
    (   Settings.ports == true
    ->  with_ports(Goal, Settings)
    ;   Settings.clock == wall,
        kernel_is_known
    ->  with_kernel(Goal, Settings)
    ;   with_ticks(Goal, Settings)
    ).


                 /*******************************
                 *            OPTIONS           *
                 *******************************/

known(ports,      boolean,                          false).
known(clock,      oneof([cpu,wall]),                cpu).
known(output,     text,                             'treering.trg').
known(recursion,  oneof([direct,full,swi_classic]), direct).
known(modules,    list(atom),                       default).
known(predicates, list,                             default).
known(except,     list,                             []).
known(report,     oneof([summary,none,callgraph,tree,flat]), summary).
known(top,        nonneg,                           25).
known(cumulative, boolean,                          false).

%   Unlike SWI-Prolog's profile/2, refuses what it does not know.

settings(Options, Settings) :-
    must_be(list, Options),
    maplist(named, Options, Pairs),
    pairs_keys(Pairs, Keys),
    (   sort(0, @=<, Keys, Sorted),
        append(_, [Twice,Twice|_], Sorted)
    ->  throw(error(domain_error(treering_option, Twice), context(treering/2, 'is given twice')))
    ;   true
    ),
    findall(Name-Default, known(Name, _, Default), Defaults),
    dict_pairs(All, settings, Defaults),
    dict_pairs(Given, settings, Pairs),
    Settings = All.put(Given),
    forall(member(Name, [recursion,modules,predicates,except]),
           (   Settings.ports == false,
               get_dict(Name, Given, _)
           ->  throw(error(domain_error(treering_option, Name),
                           context(treering/2, 'is for ports(true) only')))
           ;   true
           )).

named(Option, Name-Value) :-
    (   nonvar(Option),
        (   Option =.. [Name,Value]
        ;   Option = (Name=Value)
        )
    ->  true
    ;   type_error(option, Option)
    ),
    (   known(Name, Type, _)
    ->  (   is_of_type(Type, Value)
        ->  true
        ;   wanted(Type, Wanted),
            format(atom(Hint), '~w takes ~w', [Name,Wanted]),
            throw(error(domain_error(treering_option, Option), context(treering/2, Hint)))
        )
    ;   findall(Known, known(Known, _, _), All),
        atomic_list_concat(All, ', ', Text),
        format(atom(Hint), 'the options are ~w', [Text]),
        throw(error(domain_error(treering_option, Name), context(treering/2, Hint)))
    ).

wanted(oneof(Words), Wanted) :-
    !,
    atomic_list_concat(Words, ', ', Text),
    atom_concat('one of ', Text, Wanted).
wanted(boolean,    'true or false').
wanted(text,       'the name of a file').
wanted(list(atom), 'a list of modules').
wanted(list,       'a list of predicates').
wanted(nonneg,     'a number from 0').

:- dynamic
    active/1,                           % what is being recorded: ports, ticks or kernel, with its data
    profiled_within/1.                  % the goal has used the profiler of the system, under ticks or kernel

refuse_nested :-
    (   active(_)
    ->  throw(error(permission_error(profile, goal, treering),
                    context(treering/2, 'a goal is being profiled already')))
    ;   true
    ).


%   Said before the goal runs, and not after it.

must_be_writable(Output) :-
    absolute_file_name(Output, File),
    (   access_file(File, write),
        \+ exists_directory(File)
    ->  must_be_ours(File)
    ;   permission_error(write, file, File)
    ).

%   A file that is no profile of Treering is not replaced.

must_be_ours(Output) :-
    absolute_file_name(Output, File),
    (   exists_file(File),
        size_file(File, Size),
        Size > 0,
        \+ is_profile(File)
    ->  throw(error(permission_error(replace, file, File),
                    context(treering/2, 'it is no profile of Treering: name another file with output(File)')))
    ;   true
    ).

is_profile(File) :-
    setup_call_cleanup(
        open(File, read, In, [type(binary)]),
        read_start(24, In, Start),
        close(In)),
    member(Text, ["\211\trg", "\211\trl", "treering prolog profile"]),
    string_codes(Text, Codes),
    append(Codes, _, Start),
    !.

read_start(Count, In, Bytes) :-
    (   Count > 0,
        get_byte(In, Byte),
        Byte >= 0
    ->  Bytes = [Byte|Rest],
        Left is Count-1,
        read_start(Left, In, Rest)
    ;   Bytes = []
    ).


                 /*******************************
                 *          THE LIBRARY         *
                 *******************************/

:- dynamic
    library_problem/1.

library_file(File) :-
    getenv('TREERING_PROLOG_LIBRARY', File),
    File \== ''.
library_file(foreign(treering_prolog)).

load_library :-
    retractall(library_problem(_)),
    (   library_file(File),
        catch(load_foreign_library(File), Error, (assertz(library_problem(Error)), fail))
    ->  retractall(library_problem(_))
    ;   true
    ).

%!  treering_mark(+Name) is det.
%
%   Marks this moment with a name, in the profile of ports(true) or of `treering record`: what happens from here up to the
%   next mark is a phase of that name. Where nothing records, and without the library of Treering, this does nothing.

treering_mark(Name) :-
    must_be(atomic, Name),
    (   current_predicate('$tr_mark'/1)
    ->  '$tr_mark'(Name)
    ;   true
    ).

need_library(_) :-
    current_predicate('$tr_call'/2),
    !.
need_library(What) :-
    (   library_problem(Error)
    ->  message_to_codes(Error, Text)
    ;   Text = "it was not found"
    ),
    throw(error(existence_error(foreign_library, treering_prolog), context(What, Text))).

message_to_codes(Error, Text) :-
    message_to_text(Error, Text).

message_to_text(Error, Text) :-
    phrase(prolog:translate_message(Error), Lines),
    with_output_to(string(Text), print_message_lines(current_output, '', Lines)).


                 /*******************************
                 *          EXACT PORTS         *
                 *******************************/

%   A wrapper tells the library of what happens to the predicate:
%
%     - `'$tr_call'` is the call port. Backtracking into it is the fail port. When it is pruned, the
%       activation has exited for good, or was left by an exception, or what it has left was cut.
%     - When the predicate exits and no choice point has come since, `'$tr_exit'` tells it, and the
%       cut removes the choice point of `'$tr_call'`.
%     - Otherwise `'$tr_exit_open'` leaves a choice point; backtracking into it is the redo port.
%
%   Wrapped is called through a variable: as a goal of the body it would take time that grows with
%   the depth of recursion. The body belongs to the predicate's own module, since before 10.1.11 goals
%   that the predicate calls are looked up in the body's.

wrapper(Id, Wrapped,
        ( treering:'$tr_call'(Id, Activation),
          prolog_current_choice(Before),
          Goal = Wrapped,
          call(Goal),
          prolog_current_choice(After),
          (   Before == After
          ->  treering:'$tr_exit'(Id, Activation),
              !
          ;   treering:'$tr_exit_open'(Id, Activation)
          )
        )).

%   The goal has the number 0, and is told of in the same way.

run(Goal, 0) :-
    '$tr_call'(0, Activation),
    prolog_current_choice(Before),
    call(Goal),
    prolog_current_choice(After),
    (   Before == After
    ->  '$tr_exit'(0, Activation),
        !
    ;   '$tr_exit_open'(0, Activation)
    ).

with_ports(Goal, Settings) :-
    need_library(treering/2),
    unwrap_rest,
    selected(Settings, Heads),
    know_cost,
    setup_call_catcher_cleanup(
        begin_ports(Goal, Settings, Heads),
        once(run(Goal, _)),
        Catcher,
        end_ports(Catcher, Settings)).

begin_ports(Goal, Settings, Heads) :-
    absolute_file_name(Settings.output, Output),
    rule_name(Settings.recursion, Rule),
    '$tr_begin'(Output, Rule, Settings.clock, Problem),
    (   Problem == ""
    ->  true
    ;   throw(error(permission_error(profile, goal, treering), context(treering/2, Problem)))
    ),
    assertz(active(ports(Settings))),
    (   getenv('TREERING_PROLOG_OUTPUT', _)
    ->  unsetenv('TREERING_PROLOG_OUTPUT')  % the library tells it, byte for byte
    ;   '$tr_facts'(Facts),
        facts(Facts, File, _, _, _),
        tell_file(File)
    ),
    goal_line(Goal, GoalLine),
    maplist(predicate_line, Heads, Lines),
    atomics_to_string([GoalLine|Lines], Text),
    '$tr_predicates'(Text),
    foldl(wrap, Heads, 1, _),
    tell_begun,
    '$tr_record'(true).

rule_name(swi_classic, 'swi-classic') :- !.
rule_name(Rule, Rule).

atomics_to_string(Parts, Text) :-
    atomic_list_concat(Parts, Atom),
    atom_string(Atom, Text).

:- dynamic
    wrapped/1.                          % Module:Head

wrap(Head, Id, Next) :-
    Next is Id+1,
    wrapper(Id, Wrapped, Body),
    assertz(wrapped(Head)),
    wrap_for_good(Head, Wrapped, Body).

%   Before 9.3.25, unwrap_predicate/2 gives up the closure and the name of the wrapper twice each, so that
%   a later collection of atoms frees what is used. The clauses of kept/3 make up for that.

:- dynamic
    kept/3.

wrap_for_good(Module:Head, Wrapped, Body0) :-
    (   predicate_property(Module:prolog_current_choice(_), system)
    ->  Body = Body0
    ;   of_system(Body0, Body)
    ),
    wrap_predicate(Module:Head, treering, Wrapped, Module:Body),
    (   current_prolog_flag(version, Version),
        Version < 90325,
        closure_name(Wrapped, Closure)
    ->  assertz(kept(Closure, Closure, treering))
    ;   true
    ).

%   Where the module has a predicate of that name itself. Goals of a body that may be unbound stay.

of_system(Goal, Goal) :-
    var(Goal),
    !.
of_system((A0,B0), (A,B)) :-
    !,
    of_system(A0, A),
    of_system(B0, B).
of_system(prolog_current_choice(Choice), system:prolog_current_choice(Choice)) :- !.
of_system(Goal, Goal).

closure_name(call(Wrapped), Closure) :-
    !,
    closure_name(Wrapped, Closure).
closure_name(Wrapped, Closure) :-
    (   compound(Wrapped)
    ->  compound_name_arity(Wrapped, Closure, _)
    ;   Closure = Wrapped
    ).

%   A wrapper that still runs, in another thread or an engine, must not be removed.

unwrap_rest :-
    (   wrapped(_),
        '$tr_live'(0)
    ->  forall(retract(wrapped(Module:Head)),
               (   functor(Head, Name, Arity),
                   ignore(catch(unwrap_predicate(Module:Name/Arity, treering), _, true))
               ))
    ;   true
    ).

end_ports(Catcher, Settings) :-
    '$tr_record'(false),
    say_uncounted(Settings),
    unwrap_rest,
    '$tr_facts'(Text),
    retractall(active(_)),
    (   '$tr_end'(true)
    ->  true
    ;   print_message(error, treering(not_written(Settings.output)))
    ),
    facts(Text, File, Deepest, Lost, Rows),
    report_ports(Settings, File, Rows),
    (   wrapped(_)
    ->  '$tr_live'(Live),
        say(warning, treering(still_open(Live)))
    ;   true
    ),
    (   Lost > 0
    ->  say(warning, treering(lost(Lost)))
    ;   true
    ),
    warn_of_depth(Catcher, Deepest).

%   Predicates that the goal has loaded or asserted have no wrappers; those that it has loaded again lost theirs.

say_uncounted(Settings) :-
    catch(selected(Settings, Heads), _, Heads = []),
    keys(Heads, Now),
    findall(Head, wrapped(Head), Wrapped),
    keys(Wrapped, Before),
    ord_subtract(Now, Before, New),
    say_uncounted(has_own_clause, New, defined_meanwhile),
    say_uncounted(has_lost_wrapper, Before, loaded_again).

say_uncounted(Condition, Predicates, Message) :-
    findall(Label,
            ( member(Predicate, Predicates), head_of(Predicate, Head), call(Condition, Head), label(Head, Label) ),
            Labels),
    (   Labels == []
    ->  true
    ;   Term =.. [Message,Labels],
        warn_and_note(Term)
    ).

%   A warning that the profile has as well, without its hint.

warn_and_note(Term) :-
    phrase(message(Term), [Format-Arguments|_]),
    format(string(Text), Format, Arguments),
    '$tr_note'(Text),
    say(warning, treering(Term)).

keys(Heads, Keys) :-
    findall(Module:Name/Arity, ( member(Module:Head, Heads), functor(Head, Name, Arity) ), Keys0),
    sort(Keys0, Keys).

has_own_clause(Head) :-
    of_program(Head, _, _),
    !.
has_own_clause(Module:Head) :-
    predicate_property(Module:Head, number_of_clauses(Count)),
    Count > 0,
    \+ ( module_property(Module, file(File)), is_of_system(File) ).

has_lost_wrapper(Head) :-
    \+ ( predicate_property(Head, wrapped(Wrappers)), memberchk(treering, Wrappers) ).

%   Every wrapper keeps its caller's frame, so last calls are not optimised.

warn_of_depth(exception(error(resource_error(_), _)), Deepest) :-
    !,
    say(warning, treering(out_of_stack(Deepest))).
warn_of_depth(_, Depth-Most) :-
    (   Depth >= 100 000
    ->  say(warning, treering(deep(Depth-Most)))
    ;   true
    ).

facts(Text, File, Deepest, Lost, Rows) :-
    split_string(Text, "\n", "", Lines0),
    exclude(==(""), Lines0, Lines),
    maplist(columns, Lines, Facts),
    memberchk(["deepest",DeepestText,Most], Facts),
    memberchk(["lost",LostText], Facts),
    memberchk(["file",File], Facts),
    number_string(Depth, DeepestText),
    Deepest = Depth-Most,
    number_string(Lost, LostText),
    findall(row(Name,Numbers),
            (   member(["predicate"|Columns], Facts),
                append(Texts, [Name], Columns),
                maplist(text_number, Texts, Numbers)
            ),
            Rows).

columns(Line, Columns) :-
    split_string(Line, "\t", "", Columns).

text_number(Text, Number) :-
    number_string(Number, Text).

%   What a call costs when it is recorded: that of an empty predicate, in ticks of the clock.

:- dynamic
    cost_known/0.

know_cost :-
    cost_known,
    !.
know_cost :-
    '$tr_begin'('', direct, wall, ""),
    '$tr_predicates'("user\t0\tcalibration/0\t\n"),
    wrapper(0, Wrapped, Body),
    findall(Plain, (between(1, 20, _), batch(Plain)), Plains),
    setup_call_cleanup(
        wrap_for_good(treering:calibration, Wrapped, Body),
        ( '$tr_record'(true),
          findall(Time, (between(1, 20, _), batch(Time)), Times),
          '$tr_record'(false)
        ),
        ( unwrap_predicate(treering:calibration/0, treering),
          '$tr_end'(false)
        )),
    median(Times, With),
    median(Plains, Without),
    Cost is max(0, (With-Without)//100),
    '$tr_call_cost'(Cost),
    assertz(cost_known).

median(Values, Median) :-
    msort(Values, Sorted),
    length(Sorted, Length),
    Middle is Length//2,
    nth0(Middle, Sorted, Median).

batch(Time) :-
    '$tr_ticks'(Start),
    (   between(1, 100, _),
        calibration,
        fail
    ;   true
    ),
    '$tr_ticks'(End),
    Time is End-Start.

calibration.


                 /*******************************
                 *     WHICH PREDICATES         *
                 *******************************/

%   The heads to wrap, qualified with the modules that define them.

selected(Settings, Heads) :-
    (   Settings.modules == default,
        Settings.predicates == default
    ->  findall(Module, own_module(Module), Modules),
        Predicates = []
    ;   given(Settings.modules, Modules),
        given(Settings.predicates, Predicates),
        forall(member(Module, Modules), must_be_module(Module))
    ),
    findall(Head, (member(Module, Modules), defined_in(Module, Head)), Found),
    maplist(specified, Predicates, Lists),
    forall(( member(List, Lists), member(Head, List) ), must_be_shared(Head)),
    maplist(specified, Settings.except, Excepted0),
    append(Excepted0, Excepted),
    append([Found|Lists], All0),
    maplist(generic, All0, All1),
    sort(All1, All),
    maplist(generic, Excepted, Without0),
    sort(Without0, Without),
    ord_subtract_variants(All, Without, Heads),
    (   Heads == []
    ->  throw(error(existence_error(predicate_to_profile, Settings.modules),
                    context(treering/2, 'name modules(List) or predicates(List)')))
    ;   true
    ).

ord_subtract_variants(All, Without, Left) :-
    findall(Head, ( member(Head, All), \+ ( member(Other, Without), Other =@= Head ) ), Left).

given(default, []) :- !.
given(List, List).

generic(Module:Head0, Module:Head) :-
    functor(Head0, Name, Arity),
    functor(Head, Name, Arity).

must_be_module(Module) :-
    (   current_module(Module)
    ->  true
    ;   existence_error(module, Module)
    ).

%   Modules that may hold predicates of the program, rather than of libraries and the system.

own_module(Module) :-
    current_module(Module),
    Module \== treering,
    module_property(Module, class(Class)),
    memberchk(Class, [user,test,temporary]).

defined_in(Module, Module:Head) :-
    current_predicate(Module:Name/Arity),
    functor(Head, Name, Arity),
    \+ predicate_property(Module:Head, imported_from(_)),
    predicate_property(Module:Head, defined),
    \+ predicate_property(Module:Head, thread_local),
    \+ is_tabled_clause(Module, Name),
    \+ is_bookkeeping(Name/Arity),
    is_of_program(Module:Head).

%   By the files of its clauses: one of the program's makes it the program's, also where it is a hook of the
%   system. Otherwise those that the system has in the modules of the program are left out: with clauses from
%   its files, hooks without clauses, and what it marks by a dollar.

is_of_program(Head) :-
    of_program(Head, _, _),
    !.
is_of_program(Module:Head) :-
    Module \== prolog,
    functor(Head, Name, _),
    \+ sub_atom(Name, 0, _, _, $),
    \+ is_hook(Module:Head),
    \+ clause_file(Module:Head, _, _).

%   Hooks of the system that have no clauses.

is_hook(Head) :-
    predicate_property(Head, multifile),
    \+ ( predicate_property(Head, number_of_clauses(Count)),
         Count > 0
       ).

%   Where the clauses of the program are: each with its file and line.

of_program(Head, File, Line) :-
    clause_file(Head, File, Line),
    \+ is_of_system(File).

clause_file(Head, File, Line) :-
    predicate_property(Head, number_of_clauses(_)),
    catch(nth_clause(Head, _, Clause), _, fail),
    clause_property(Clause, file(File)),
    clause_property(Clause, line_count(Line)).

is_of_system(File) :-
    current_prolog_flag(home, Home),
    atom_concat(Home, /, Folder),
    sub_atom(File, 0, _, _, Folder),
    !.
is_of_system(File) :-
    module_property(treering, file(File)).

%   Notes of the system on a program's predicates, as clauses from the program's file.

is_bookkeeping('$tabled'/2).
is_bookkeeping('$table_mode'/3).
is_bookkeeping('$table_update'/4).
is_bookkeeping('$pldoc'/4).
is_bookkeeping('$pldoc_link'/2).
is_bookkeeping('$mode'/2).
is_bookkeeping('$exported_op'/3).
is_bookkeeping('$pred_option'/4).
is_bookkeeping(Name/_) :-
    sub_atom(Name, 0, _, _, '$wrap$').

%   The clauses of a tabled predicate; its calls are counted at the predicate itself.

is_tabled_clause(Module, Name) :-
    atom_concat(Tabled, ' tabled', Name),
    current_predicate(Module:Tabled/_),
    !.

%   The heads of Name, Name/Arity or Name//Arity, with or without a module.

specified(Spec, Heads) :-
    strip_module(user:Spec, Module, Plain),
    (   ground(Plain),
        indicator(Plain, Name, Arity)
    ->  true
    ;   type_error(predicate_indicator, Spec)
    ),
    findall(Head, specified(Module, Name, Arity, Head), Heads0),
    sort(Heads0, Heads),
    (   Heads == []
    ->  existence_error(procedure, Spec)
    ;   true
    ).

indicator(Name/Arity, Name, Arity) :- atom(Name), integer(Arity).
indicator(Name//Arity0, Name, Arity) :- atom(Name), integer(Arity0), Arity is Arity0+2.
indicator(Name, Name, _) :- atom(Name).

specified(Module, Name, Arity, Defining:Head) :-
    (   integer(Arity)
    ->  functor(Head, Name, Arity),
        (   predicate_property(Module:Head, defined)    % loads what is to be autoloaded
        ->  true
        )
    ;   current_predicate(Name, Module:Head)
    ),
    (   predicate_property(Module:Head, imported_from(Defining))
    ->  true
    ;   Defining = Module
    ).

%   Each thread has a copy of its own of a thread-local predicate. SWI-Prolog's hook for messages of threads is
%   one; programs with threads crash when it is wrapped.

must_be_shared(Module:Head) :-
    (   predicate_property(Module:Head, thread_local)
    ->  functor(Head, Name, Arity),
        permission_error(profile, thread_local_predicate, Module:Name/Arity)
    ;   true
    ).


                 /*******************************
                 *        NAMES AND PLACES      *
                 *******************************/

%   A line for the library: kind, line, name, file.

predicate_line(Head, Line) :-
    place(Head, Kind, File, Number),
    label(Head, Label),
    format(string(Line), '~w\t~w\t~w\t~w\n', [Kind,Number,Label,File]).

goal_line(Goal, Line) :-
    goal_label(Goal, Label),
    format(string(Line), 'goal\t0\t~w\t\n', [Label]).

goal_label(Goal0, Label) :-
    strip_module(Goal0, _, Goal1),
    copy_term_nat(Goal1, Goal),
    numbervars(Goal, 0, _, [attvar(skip)]),
    format(string(Long), '?- ~W', [Goal, [quoted(true),max_depth(6),numbervars(true),portray(false)]]),
    split_string(Long, "\n\t", "", Words),
    atomic_list_concat(Words, ' ', One),
    (   sub_atom(One, 0, 60, Rest, Short),
        Rest > 0
    ->  atom_concat(Short, '\x2026\', Label)
    ;   Label = One
    ).

place(Head, Kind, File, Line) :-
    (   predicate_property(Head, multifile),
        of_program(Head, File0, Line0)
    ->  File = File0,
        Line = Line0
    ;   predicate_property(Head, file(File0)),
        predicate_property(Head, line_count(Line0))
    ->  File = File0,
        Line = Line0
    ;   File = '',
        Line = 0
    ),
    (   Head = system:_
    ->  Kind = system
    ;   predicate_property(Head, foreign)
    ->  Kind = foreign
    ;   Kind = user
    ).

%   As SWI-Prolog prints predicates: without the module where that is user or system.

label(Module:Head, Label) :-
    functor(Head, Name, Arity),
    indicator_text(Name, Arity, Indicator),
    (   memberchk(Module, [user,system])
    ->  Label0 = Indicator
    ;   format(string(Label0), '~q:~w', [Module,Indicator])
    ),
    split_string(Label0, "\n\t", "", Words),
    atomic_list_concat(Words, ' ', Label).


%   As people write it: names of signs are printed apart from the slash, as it would be a part of them.

indicator_text(Name, Arity, Text) :-
    format(string(Plain), '~q', [Name/Arity]),
    format(string(Apart), '~q / ~d', [Name,Arity]),
    (   Plain == Apart
    ->  format(string(Text), '~q/~d', [Name,Arity])
    ;   Text = Plain
    ).


                 /*******************************
                 *        OTHER THREADS         *
                 *******************************/

%   SWI-Prolog's profiler follows the thread that calls the goal. How many others were made since, and the
%   processor time of all others, tell what is not in the profile. Nor does it follow engines.

threads(threads(Made, Process, Thread, Collector, Engines)) :-
    statistics(threads_created, Made),
    statistics(process_cputime, Process),
    statistics(cputime, Thread),
    collectors(Collector),
    statistics(engines_created, EnginesMade),
    statistics(engines, EnginesLeft),
    Engines = EnginesMade-EnginesLeft.

%   The thread that collects atoms and clauses is the system's own.

collectors(1) :-
    catch(thread_property(gc, status(_)), _, fail),
    !.
collectors(0).

%   Less time than this is the system's own as well.

left_out(threads(Made0, Process0, Thread0, Collector0, _), others(Count, Seconds)) :-
    threads(threads(Made, Process, Thread, Collector, _)),
    Count is max(0, Made-Made0-(Collector-Collector0)),
    Seconds is max(0.0, (Process-Process0)-(Thread-Thread0)),
    (   Count > 0
    ->  true
    ;   Seconds > 0.05,
        Seconds > 0.1*(Thread-Thread0)
    ).

%   Engines that were there before may have gone on as well.

left_out(threads(_, _, _, _, Made0-Left0), engines(Count)) :-
    threads(threads(_, _, _, _, Made-_)),
    Count is Made-Made0+Left0,
    Count > 0.

say_left_out(Start, Others) :-
    findall(Other, left_out(Start, Other), Others),
    forall(member(Other, Others), say(warning, treering(left_out(Other)))).

write_left_out(Out, Others) :-
    forall(member(Other, Others),
           ( others_text(Other, OthersText), line(Out, [note,OthersText]) )),
    (   profiled_within(How)
    ->  within_text(How, Text),
        line(Out, [note,Text])
    ;   true
    ).

within_text(ticks, 'the goal used SWI-Prolog\'s profiler itself: calls before or after that are not in this profile; ports count all').
within_text(kernel, 'the goal used SWI-Prolog\'s profiler itself, whose table is empty with clock(wall): calls after that are not in this profile; ports count all').

warn_of_profiling :-
    (   retract(profiled_within(How))
    ->  within_text(How, Text),
        retractall(profiled_within(_)),
        say(warning, treering(profiled_within(Text)))
    ;   true
    ).

others_text(engines(Count), Text) :-
    (   Count =:= 1
    ->  Which = 'an engine'
    ;   format(atom(Which), '~D engines', [Count])
    ),
    format(atom(Text), 'calls in ~w are not in this profile: SWI-Prolog follows the thread alone; ports count all', [Which]).
others_text(others(Count, Seconds), Text) :-
    (   Count =:= 0
    ->  Which = 'other threads'
    ;   Count =:= 1
    ->  Which = 'another thread, which was made meanwhile,'
    ;   format(atom(Which), '~D other threads, which were made meanwhile,', [Count])
    ),
    format(atom(Text),
           'calls and time of ~w are not in this profile (~3f s of CPU time): SWI-Prolog follows one thread; ports count all',
           [Which,Seconds]).


                 /*******************************
                 *   SWI-PROLOG'S OWN PROFILER  *
                 *******************************/

%   The profiler of the system keeps a tree of calls, of which show_profile/1 shows the predicates only.
%   It is written to a file as it is, as docs/formats/prolog.md describes.

with_ticks(Goal, Settings) :-
    time_name(Settings.clock, Time),
    get_time(Start),
    threads(Threads),
    goal_label(Goal, Label),
    thread_self(Self),
    setup_call_cleanup(
        ( assertz(active(ticks(Label, Start-Threads, Settings, Self))), tell_begun ),
        under_profiler(Goal, Time),
        end_ticks(Label, Start-Threads, Settings)).

%   What profile/2 calls; since 9.1.8 with the ports that are counted and a rate. The tree is built by the
%   rule of earlier versions.

:- meta_predicate under_profiler(0, +).

under_profiler(Goal, Time) :-
    (   predicate_property(system:'$profile'(_,_,_,_), defined)
    ->  Call = '$profile'(Goal, Time, classic, 200)
    ;   Call = '$profile'(Goal, Time)
    ),
    call(system:Call).

time_name(cpu,  cputime).
time_name(wall, walltime).

end_ticks(Label, Start-Threads, Settings) :-
    retractall(active(_)),
    say_left_out(Threads, Others),
    write_ticks(Settings, Label, Start, Others, Summary, File),
    report_ticks(Settings, File),
    (   profiled_within(_)
    ->  warn_of_profiling
    ;   warn_of_samples(Summary)
    ).

%   What show_profile/1 does after profile/1 or profile/2, if it is allowed to.

:- multifile
    prolog:show_profile_hook/1.

prolog:show_profile_hook(Options) :-
    is_list(Options),
    treering:is_outermost,
    treering:show_profile(Options).

%   A goal that is being profiled may call profile/1 itself. SWI-Prolog then shows the result as it does without
%   us, and its profiler has forgotten all other calls. Under the kernel's functions of ours, it never had any.

is_outermost :-
    active(Kind),
    !,
    functor(Kind, How, _),
    (   How == ports
    ->  true
    ;   assertz(profiled_within(How))
    ),
    fail.
is_outermost.

show_profile(Options) :-
    option(top(Top), Options, 25),
    option(cumulative(Cumulative), Options, false),
    option(time(Clock0), Options, cpu),
    (   memberchk(Clock0, [wall,walltime])
    ->  Clock = wall
    ;   Clock = cpu
    ),
    settings([top(Top),cumulative(Cumulative),clock(Clock)], Settings),
    must_be_ours(Settings.output),
    write_ticks(Settings, '', 0, [], Summary, File),
    report_ticks(Settings, File),
    warn_of_samples(Summary).

%   Fewer samples than these tell little: a predicate with a tenth of them has between 4 % and 18 % of
%   the time, with a confidence of 95 %.

warn_of_samples(Summary) :-
    Samples = Summary.samples,
    (   Samples < 100
    ->  say(warning, treering(few_samples(Samples)))
    ;   true
    ).

write_ticks(Settings, Goal, Start, Others, Summary, File) :-
    absolute_file_name(Settings.output, File),
    summary(Summary),
    setup_call_cleanup(
        open(File, write, Out, [encoding(utf8),newline(posix)]),
        write_profile(Out, Settings.clock, Goal, Start, Others, Summary),
        close(Out)),
    tell_file(File).

%   The summary has other keys in other versions; those that are used have stayed.

summary(Summary) :-
    (   has_tree,
        statistics_goal(Samples, Ticks, Accounting, Time, Nodes, Statistics),
        catch(Statistics, _, fail)
    ->  Summary = summary{samples:Samples, ticks:Ticks, accounting:Accounting, time:Time, nodes:Nodes}
    ;   profile_data(Data),
        Summary = Data.summary
    ).

%   Predicates without documentation, so they are tried: the tree has had this shape from 9.0.4 on. The
%   statistics have two more columns since 9.1.8.

has_tree :-
    statistics_goal(_, _, _, _, _, _),
    forall(member(Head, ['$prof_sibling_of'(_,_),'$prof_node'(_,_,_,_,_,_,_,_)]),
           predicate_property(system:Head, defined)).

statistics_goal(Samples, Ticks, Accounting, Time, Nodes, system:Goal) :-
    member(Goal, [ '$prof_statistics'(Samples, Ticks, Accounting, Time, Nodes),
                   '$prof_statistics'(Samples, Ticks, Accounting, Time, Nodes, _, _)
                 ]),
    predicate_property(system:Goal, defined),
    !.

write_profile(Out, Clock, Goal, Start, Others, Summary) :-
    system_name(System),
    Nanoseconds is round(Summary.time*1.0e9),
    StartNs is round(Start*1.0e9),
    line(Out, ['treering prolog profile',1]),
    line(Out, [system,System]),
    (   Goal == ''
    ->  true
    ;   line(Out, [goal,Goal])
    ),
    line(Out, [clock,Clock]),
    line(Out, [unit,ticks]),
    line(Out, [start,StartNs]),
    line(Out, [time,Nanoseconds]),
    line(Out, [samples,Summary.samples]),
    line(Out, [ticks,Summary.ticks]),
    line(Out, [accounting,Summary.accounting]),
    write_left_out(Out, Others),
    (   has_tree
    ->  line(Out, [rule,'swi-classic']),
        write_tree(Out)
    ;   line(Out, [rule,flat]),
        write_graph(Out)
    ).

system_name(System) :-
    current_prolog_flag(version, Version),
    Major is Version//10 000,
    Minor is Version//100 mod 100,
    Patch is Version mod 100,
    format(atom(System), 'SWI-Prolog ~w.~w.~w', [Major,Minor,Patch]).

line(Out, Parts) :-
    atomic_list_concat(Parts, '\t', Line),
    format(Out, '~w~n', [Line]).

%   Nodes in the order of a walk from the roots. A root of the profiler's own is left out: the goal is
%   called below it.

write_tree(Out) :-
    below(-, Roots0),
    maplist(without_plumbing, Roots0, Lists),
    append(Lists, Roots),
    phrase(walk(Roots, 0, 1, _), Lines),
    Lines \== [],
    !,
    setof(Predicate, Parent^Counts^member(node(Parent,Predicate,Counts), Lines), Predicates),
    write_predicates(Out, Predicates, Numbers),
    forall(member(node(Parent,Predicate,Counts), Lines),
           ( get_number(Predicate, Numbers, Number),
             line(Out, [node,Parent,Number|Counts]) )),
    length(Lines, Count),
    line(Out, [end,Count]).

write_tree(Out) :-                      % nothing was called
    line(Out, [end,0]).

%   The oldest first; the profiler gives the youngest first.

below(Node, Children) :-
    findall(tree(Child,Grandchildren),
            ( '$prof_sibling_of'(Child, Node), \+ is_end(Child), below(Child, Grandchildren) ),
            Youngest),
    reverse(Youngest, Children).

%   Code that a signal runs to end the profile is no part of the goal.

is_end(Node) :-
    '$prof_node'(Node, Predicate, _, _, _, _, _, _),
    head_of(Predicate, treering:ended_by(_)).

without_plumbing(tree(Node,Children), Roots) :-
    '$prof_node'(Node, Predicate, _, _, _, _, Ticks, _),
    (   Ticks =:= 0,
        plumbing(Predicate)
    ->  maplist(without_plumbing, Children, Lists),
        append(Lists, Roots)
    ;   Roots = [tree(Node,Children)]
    ).

plumbing(system:'$c_call_prolog') :- !.
plumbing(system:'$c_call_prolog'/0) :- !.
plumbing(system:profiler(_,_)) :- !.
plumbing(system:profiler/2) :- !.
plumbing(treering:_).
plumbing(system:'$profile'(_,_,_,_)) :- !.
plumbing(system:'$profile'/4) :- !.
plumbing(prolog_statistics:_).
plumbing(prolog_profile:_).

walk([], _, Next, Next) -->
    [].
walk([tree(Node,Children)|Others], Parent, This, Next) -->
    { '$prof_node'(Node, Predicate, Calls, _Redos, _Exits, Recursive, Ticks, _),
      All is Calls+Recursive,
      After is This+1
    },
    [ node(Parent,Predicate,[All,Recursive,Ticks]) ],
    walk(Children, This, After, Between),
    walk(Others, Parent, Between, Next).

write_predicates(Out, Predicates, Numbers) :-
    forall(member(Predicate, Predicates),
           ( head_of(Predicate, Head),
             predicate_line(Head, Line),
             format(Out, 'predicate\t~w', [Line]) )),
    findall(Predicate-Number, nth1(Number, Predicates, Predicate), Pairs),
    list_to_assoc(Pairs, Numbers).

get_number(Predicate, Numbers, Number) :-
    get_assoc(Predicate, Numbers, Number).

head_of(Module:Name/Arity, Module:Head) :-
    atom(Name),
    integer(Arity),
    !,
    functor(Head, Name, Arity).
head_of(Name/Arity, system:Head) :-
    atom(Name),
    integer(Arity),
    !,
    functor(Head, Name, Arity).
head_of(Module:Head0, Module:Head) :-
    !,
    functor(Head0, Name, Arity),
    functor(Head, Name, Arity).
head_of(Head, system:Head).

%   The public data: for each predicate its callers, and how often each called it, without chains. Self ticks are in
%   a node for each predicate, and calls in arcs.

write_graph(Out) :-
    profile_data(Data),
    findall(Predicate,
            ( member(Node, Data.nodes),
              ( Predicate = Node.predicate ; member(Caller, Node.callers), caller(Caller, Predicate, _) ) ),
            Predicates0),
    sort(Predicates0, Predicates),
    write_predicates(Out, Predicates, Numbers),
    forall(member(Node, Data.nodes),
           ( get_number(Node.predicate, Numbers, Number),
             calls_of(Node, Calls, Recursive),
             line(Out, [node,0,Number,Calls,Recursive,Node.ticks_self]) )),
    forall(( member(Node, Data.nodes), calls_of(Node, _, Recursive), Recursive > 0 ),
           ( get_number(Node.predicate, Numbers, Number),
             line(Out, [arc,Number,Number,Recursive]) )),
    forall(( member(Node, Data.nodes), member(Caller, Node.callers), caller(Caller, Predicate, Calls) ),
           ( get_number(Node.predicate, Numbers, Callee),
             get_number(Predicate, Numbers, Number),
             line(Out, [arc,Number,Callee,Calls]) )),
    length(Data.nodes, Count),
    line(Out, [end,Count]).

caller(Caller, Predicate, Calls) :-
    arg(1, Caller, Predicate),
    Predicate = _:_,
    arg(5, Caller, Calls).

calls_of(Node, Calls, Recursive) :-
    findall(Count,
            ( member(Caller, Node.callers), arg(1, Caller, '<recursive>'), arg(5, Caller, Count) ),
            Counts),
    sum_list(Counts, Recursive),
    Calls is Node.call+Recursive.

%   The table of show_profile/1, but with all calls, and with seconds.

report_ticks(Settings, File) :-
    Settings.report == summary,
    !,
    summary(Summary),
    tick_rows(Rows),
    report_rows(Rows, Summary, Settings, File).
report_ticks(Settings, File) :-
    report_file(Settings.report, File).

%   Without ticks there is nothing to say of the time of predicates.

report_rows(Rows, Summary, Settings, File) :-
    \+ ( member(row(_,_,Ticks,_), Rows), Ticks > 0 ),
    !,
    sort(2, @>=, Rows, Sorted),
    Top = Settings.top,
    clock_label(Settings.clock, Clock),
    format('~`=t~80|~n'),
    format('~w time: ~3f seconds; no sample was taken~n', [Clock,Summary.time]),
    format('~`=t~80|~n'),
    format('~w~t~44|~t~w~56|~n', ['Predicate',calls]),
    format('~`=t~80|~n'),
    forall(( nth1(Nth, Sorted, row(Name,Calls,_,_)), Nth =< Top ),
           format('~w~t~44|~t~D~56|~n', [Name,Calls])),
    tell_next(File).
report_rows(Rows, Summary, Settings, File) :-
    (   Settings.cumulative == true
    ->  At = 4
    ;   At = 3
    ),
    sort(At, @>=, Rows, Sorted),
    Top = Settings.top,
    aggregate_all(sum(Ticks), member(row(_,_,Ticks,_), Rows), All),
    clock_label(Settings.clock, Clock),
    format('~`=t~80|~n'),
    format('~w time: ~3f seconds, shared out by ~D samples of ~D ticks~n',
           [Clock,Summary.time,Summary.samples,Summary.ticks]),
    format('~`=t~80|~n'),
    format('~w~t~44|~t~w~56|~t~w~64|~t~w~72|~t~w~80|~n', ['Predicate','calls','seconds','self','total']),
    format('~`=t~80|~n'),
    forall(( nth1(Nth, Sorted, row(Name,Calls,Ticks,Total)), Nth =< Top ),
           ( Share is 100*Ticks/max(1, All),
             TotalShare is 100*Total/max(1, All),
             Seconds is Summary.time*Ticks/max(1, All),
             format('~w~t~44|~t~D~56|~t~3f~64|~t~1f%~72|~t~1f%~80|~n', [Name,Calls,Seconds,Share,TotalShare]) )),
    tell_next(File).

clock_label(cpu,  'CPU').
clock_label(wall, 'Wall').

tick_rows(Rows) :-
    profile_data(Data),
    findall(row(Label,Calls,Ticks,Total),
            ( member(Node, Data.nodes),
              head_of(Node.predicate, Head),
              \+ plumbing(Head),
              label(Head, Label),
              calls_of(Node, Calls, _),
              Ticks = Node.ticks_self,
              Total is Node.ticks_self+Node.ticks_siblings
            ),
            Rows).


                 /*******************************
                 *          THE KERNEL          *
                 *******************************/

%   Where the code of SWI-Prolog's kernel is known, the functions by which it profiles are replaced while
%   the goal runs: every call is counted and every change of predicate is timed, and last calls are
%   optimised as ever. Elsewhere the system's own profiler samples the wall clock.

kernel_is_known :-
    (   current_predicate('$tr_kernel_problem'/1)
    ->  '$tr_kernel_problem'(Problem)
    ;   Problem = "the library of Treering was not found"
    ),
    (   Problem == ""
    ->  true
    ;   say(informational, treering(sampled_instead(Problem))),
        fail
    ).

with_kernel(Goal, Settings) :-
    know_cost,                          % chooses the clock
    get_time(Start),
    threads(Threads),
    goal_label(Goal, Label),
    reset_profiler,
    setup_call_cleanup(
        begin_kernel(Label, Start-Threads, Settings),
        once(under_kernel(Goal)),
        end_kernel(Label, Start-Threads, Settings)).

begin_kernel(Label, Start, Settings) :-
    '$tr_kernel_begin'(Problem),
    (   Problem == ""
    ->  thread_self(Self),
        assertz(active(kernel(Label, Start, Settings, Self))),
        tell_begun
    ;   throw(error(permission_error(profile, goal, treering), context(treering/2, Problem)))
    ).

:- meta_predicate under_kernel(0).

%   Choice points of the goal are cut before the end, since that may call clean-ups of the goal.

under_kernel(Goal) :-
    profiler(_, cputime),
    (   call(Goal)
    ->  profiler(_, false)
    ;   profiler(_, false),
        fail
    ).

end_kernel(Label, Start-Threads, Settings) :-
    profiler(_, false),
    '$tr_kernel_end',
    reset_profiler,
    retractall(active(_)),
    say_left_out(Threads, Others),
    '$tr_kernel_lines'(Text),
    split_string(Text, "\n", "", [First|Lines0]),
    exclude(==(""), Lines0, Lines),
    maplist(columns, [First|Lines], [Outside|Nodes]),
    maplist(maplist(text_number), [Outside|Nodes], [[OutsideNs,TimeNs]|NodeRows0]),
    findall(Number, member([_,Number|_], NodeRows0), Numbers),
    max_list([0|Numbers], Most),
    findall(Head, ( between(1, Most, Number), kernel_head(Number, Head) ), Predicates),
    without_end(NodeRows0, Predicates, NodeRows),
    absolute_file_name(Settings.output, File),
    setup_call_cleanup(
        open(File, write, Out, [encoding(utf8),newline(posix)]),
        write_kernel(Out, Label, Start-Others, OutsideNs, TimeNs, NodeRows, Predicates),
        close(Out)),
    tell_file(File),
    report_kernel(Settings, File, TimeNs, NodeRows, Predicates),
    warn_of_profiling.

%   The end of the profiler is a part of the goal, whether it is called below it or, where an exception passes or
%   the goal halts, below what the kernel calls then. Its rows get 0 for the predicate, and no calls.

without_end(Rows0, Predicates, Rows) :-
    Heads =.. [heads|Predicates],
    foldl(end_row(Heads), Rows0, end(1,[],[]), end(_,Ours,Above)),
    foldl(row_without_end(Heads, Ours, Above), Rows0, Rows, 1, _).

end_row(Heads, [Parent,Number|_], end(At,Ours0,Above0), end(Next,Ours,Above)) :-
    Next is At+1,
    (   memberchk(Parent, Ours0)
    ->  Ours = [At|Ours0],
        Above = Above0
    ;   arg(Number, Heads, Head),
        memberchk(Head, [treering:end_kernel(_,_,_), treering:end_early, treering:end_for(_)])
    ->  Ours = [At|Ours0],
        Above = [Parent|Above0]
    ;   Ours = Ours0,
        Above = Above0
    ).

row_without_end(Heads, Ours, Above, [Parent,Number,Calls,Recursive,Ns], Row, At, Next) :-
    Next is At+1,
    arg(Number, Heads, Head),
    (   memberchk(At, Ours)
    ->  Row = [0,0,0,0,Ns]
    ;   plumbing(Head),
        memberchk(At, Above),
        Calls > 1
    ->  Others is Calls-1,
        Row = [Parent,Number,Others,Recursive,Ns]
    ;   plumbing(Head),
        ( Parent == 0 ; memberchk(At, Above) )
    ->  Row = [0,0,0,0,Ns]
    ;   Row = [Parent,Number,Calls,Recursive,Ns]
    ).

write_kernel(Out, Label, Start-Others, OutsideNs, TimeNs, NodeRows, Predicates) :-
    StartNs is round(Start*1.0e9),
    system_name(System),
    line(Out, ['treering prolog profile',1]),
    line(Out, [system,System]),
    line(Out, [goal,Label]),
    line(Out, [clock,wall]),
    line(Out, [unit,ns]),
    line(Out, [start,StartNs]),
    line(Out, [time,TimeNs]),
    line(Out, [rule,'swi-classic']),
    write_left_out(Out, Others),
    forall(member(Head, Predicates), ( predicate_line(Head, Line), format(Out, 'predicate\t~w', [Line]) )),
    length(Predicates, Count),
    Goal is Count+1,
    format(Out, 'predicate\tgoal\t0\t~w\t\n', [Label]),
    line(Out, [node,0,Goal,1,0,OutsideNs]),
    forall(( member([Parent0,Number|Counts0], NodeRows), Parent is Parent0+1 ),
           (   Number == 0
           ->  line(Out, [node,0,Goal|Counts0])
           ;   line(Out, [node,Parent,Number|Counts0])
           )),
    length(NodeRows, Nodes),
    All is Nodes+1,
    line(Out, [end,All]).

kernel_head(Number, Head) :-
    '$tr_kernel_predicate'(Number, Predicate),
    !,
    head_of(Predicate, Head).
kernel_head(_, system:'$unknown_predicate').

report_kernel(Settings, File, TimeNs, NodeRows, Predicates) :-
    Settings.report == summary,
    !,
    findall(row(Label,Calls,Ns),
            ( nth1(Number, Predicates, Head),
              \+ plumbing(Head),
              aggregate_all(sum(C), member([_,Number,C|_], NodeRows), Calls),
              Calls > 0,
              label(Head, Label),
              aggregate_all(sum(N), member([_,Number,_,_,N], NodeRows), Ns) ),
            Rows),
    sort(3, @>=, Rows, Sorted),
    Top = Settings.top,
    Seconds is TimeNs/1.0e9,
    format('~`=t~72|~n'),
    format('Wall time: ~3f seconds~n', [Seconds]),
    format('~`=t~72|~n'),
    format('~w~t~44|~t~w~56|~t~w~64|~t~w~72|~n', ['Predicate',calls,seconds,self]),
    format('~`=t~72|~n'),
    forall(( nth1(Nth, Sorted, row(Name,Calls,Ns)), Nth =< Top ),
           ( Share is 100*Ns/max(1, TimeNs),
             Self is Ns/1.0e9,
             format('~w~t~44|~t~D~56|~t~3f~64|~t~1f%~72|~n', [Name,Calls,Self,Share]) )),
    tell_next(File).
report_kernel(Settings, File, _, _, _) :-
    report_file(Settings.report, File).


                 /*******************************
                 *            REPORTS           *
                 *******************************/

%   A table in the manner of show_profile/1, of exact ports.

report_ports(Settings, File, Rows) :-
    Settings.report == summary,
    !,
    aggregate_self(Rows, Total),
    keyed(Settings.cumulative, Rows, Sorted),
    Top = Settings.top,
    Seconds is Total/1.0e9,
    format('~`=t~100|~n'),
    format('Wall time: ~3f seconds, with what recording costs~n', [Seconds]),
    format('~`=t~100|~n'),
    format('~w~t~33|~t~w~43|~t~w~53|~t~w~63|~t~w~73|~t~w~80|~t~w~86|~t~w~93|~t~w~100|~n',
           ['Predicate','calls','exits','redos','fails','exc.','cuts','self','total']),
    format('~`=t~100|~n'),
    forall(( nth1(Nth, Sorted, row(Name, [C,E,R,F,X,U,Self,All])), Nth =< Top ),
           ( SelfShare is 100*Self/max(1, Total),
             AllShare is 100*All/max(1, Total),
             format('~w~t~33|~t~D~43|~t~D~53|~t~D~63|~t~D~73|~t~D~80|~t~D~86|~t~1f%~93|~t~1f%~100|~n',
                    [Name,C,E,R,F,X,U,SelfShare,AllShare]) )),
    tell_next(File).
report_ports(Settings, File, _) :-
    report_file(Settings.report, File).

aggregate_self(Rows, Total) :-
    aggregate_all(sum(Self), member(row(_,[_,_,_,_,_,_,Self,_]), Rows), Total).

keyed(Cumulative, Rows, Sorted) :-
    (   Cumulative == true
    ->  At = 8
    ;   At = 7
    ),
    findall(Key-row(Name,Numbers),
            ( member(row(Name,Numbers), Rows), nth1(At, Numbers, Key) ),
            Pairs),
    sort(1, @>=, Pairs, SortedPairs),
    pairs_values(SortedPairs, Sorted).

report_file(none, _) :- !.
report_file(Report, File) :-
    (   Report \== summary,
        program(Program)
    ->  atom_concat('--', Report, Option),
        flush_output,
        process_create(Program, [report,file(File),Option], [process(Pid)]),
        process_wait(Pid, Status),
        (   Status == exit(0)
        ->  true
        ;   print_message(warning, treering(report_failed(Status)))
        )
    ;   (   Report \== summary
        ->  print_message(warning, treering(no_program))
        ;   true
        ),
        tell_next(File)
    ).

%   The program, which is beside nothing of ours: on the search path, or named by the environment.

program(Program) :-
    (   getenv('TREERING_PROGRAM', Named),
        exists_file(Named)
    ->  Program = Named
    ;   absolute_file_name(path(treering), Program, [access(execute),file_errors(fail)])
    ).

tell_next(File) :-
    print_message(informational, treering(wrote(File))).

%   The command's option --quiet lets errors through only.

:- dynamic
    is_quiet/0.

say(Level, Message) :-
    (   is_quiet
    ->  true
    ;   print_message(Level, Message)
    ).

:- multifile
    prolog:message//1.

prolog:message(treering(Message)) -->
    message(Message).

message(wrote(File)) -->
    [ 'wrote ~w; next, from a shell: treering report ~w --callgraph or --tree'-[File,File] ].
message(not_written(File)) -->
    [ 'the profile could not be written to ~w'-[File] ].
message(deep(Depth-Most)) -->
    [ 'calls were ~D deep: wrappers keep last calls from being optimised, and each level takes about'-[Depth], nl,
      '450 bytes of stack. Most of the deepest ones are of ~w; if it is a loop, leave it out:'-[Most], nl ],
    except(Most).
message(out_of_stack(Depth-Most)) -->
    [ 'the stack was exhausted when calls were ~D deep: wrappers keep last calls from being optimised.'-[Depth], nl,
      'Most of the deepest ones are of ~w. Give more stack with swipl --stack-limit=4g, or leave it out:'-[Most], nl ],
    except(Most).
message(still_open(Count)) -->
    [ '~D calls of other threads or engines have not ended; predicates stay wrapped, which takes time,'-[Count], nl,
      'until treering/2 is called again' ].
message(defined_meanwhile(Labels)) -->
    { some(Labels, Names) },
    [ 'not counted, since the goal loaded or asserted their first clause: ~w'-[Names], nl,
      'load files before the goal runs, and declare what is asserted dynamic' ].
message(loaded_again(Labels)) -->
    { some(Labels, Names) },
    [ 'counts are too low, since the goal loaded the file again or removed the predicate: ~w'-[Names] ].
message(unreadable_predicates) -->
    [ 'a predicate of --predicate or --except cannot be read: name each as Name/Arity, in quotes where Prolog needs'-[], nl,
      'them; there are no patterns'-[] ].
message(not_ended(Thread)) -->
    [ 'the profile is lost: thread ~w, which calls the goal, could not end it when another thread or an engine halted'-[Thread], nl,
      'ports are in a file while the goal runs: ports(true), or from a shell --ports' ].
message(lost(Count)) -->
    [ '~D events could not be recorded; counts may be too low'-[Count] ].
message(no_program) -->
    [ 'the program treering is not on the search path; PATH or TREERING_PROGRAM must lead to it'-[] ].
message(report_failed(Status)) -->
    [ 'the program treering ended with ~w'-[Status] ].
message(sampled_instead(Problem)) -->
    [ 'the wall clock is sampled: ~w'-[Problem] ].
message(undefined(Name, Program)) -->
    [ '~q is defined neither in ~w nor in what it loads'-[Name,Program] ].
message(few_samples(Samples)) -->
    [ 'the time was taken ~D times only, which is too few to tell where it goes: let the goal run for a'-[Samples], nl,
      'second or more. Calls of the thread that called the goal are exact' ].
message(profiled_within(Text)) -->
    [ '~w'-[Text] ].
message(left_out(Others)) -->
    { others_text(Others, Text) },
    [ '~w'-[Text], nl, 'of all threads and engines: ports(true), or from a shell --ports' ].
message(public_only) -->
    [ 'this SWI-Prolog does not show the tree of its profiler; the profile has callers and callees, without chains' ].


%   The first names of many.

some(Labels, Names) :-
    (   length(Shown, 5),
        append(Shown, [_|More], Labels)
    ->  length([_|More], Left),
        format(atom(Rest), ' and ~D more', [Left])
    ;   Shown = Labels,
        Rest = ''
    ),
    atomic_list_concat(Shown, ', ', Shown1),
    atom_concat(Shown1, Rest, Names).

except(Predicate) -->
    [ 'except([~w]), or from a shell --except ~w'-[Predicate,Predicate] ].


                 /*******************************
                 *        THE COMMAND           *
                 *******************************/

%   What the command `treering prolog` has SWI-Prolog run. It ends as swipl ends after `-g`.

:- public
    from_shell/0,
    before_shell/0.

%   Before the program is loaded. Where no goal was given, main is called after that, so that
%   initialization(main) has not to call it as well.

:- multifile user:term_expansion/2.
:- dynamic   user:term_expansion/2.

before_shell :-
    (   getenv('TREERING_PROLOG_MAIN', _)
    ->  asserta((user:term_expansion((:- initialization(Main)), []) :- treering:is_profiled_anyway(Main)))
    ;   true
    ).

is_profiled_anyway(Main) :-
    strip_module(Main, _, Plain),
    Plain == main,
    getenv('TREERING_PROLOG_MAIN', Program),
    prolog_load_context(source, File),
    same_file(File, Program).

from_shell :-
    forget_expansion,
    unsetenv('TREERING_PROLOG_MAIN'),
    getenv('TREERING_PROLOG_GOAL', GoalText),
    getenv('TREERING_PROLOG_OPTIONS', OptionsText),
    getenv('TREERING_PROLOG_PROGRAM', Program),
    unsetenv('TREERING_PROLOG_GOAL'),
    unsetenv('TREERING_PROLOG_OPTIONS'),
    unsetenv('TREERING_PROLOG_PROGRAM'),
    catch_with_backtrace(from_shell(GoalText, OptionsText, Status), Error, raised(GoalText, Error, Status)),
    say_if_undefined(Error, Program),
    halt(Status).

forget_expansion :-
    forall(( clause(user:term_expansion((:- initialization(_)), []), Body, Clause),
             Body = treering:is_profiled_anyway(_) ),
           erase(Clause)).

from_shell(GoalText, OptionsText, Status) :-
    (   getenv('TREERING_PROLOG_QUIET', _)
    ->  unsetenv('TREERING_PROLOG_QUIET'),
        assertz(is_quiet)
    ;   true
    ),
    catch(term_string(Options, OptionsText), Unreadable, print_message(error, treering(unreadable_predicates))),
    catch(term_string(Goal, GoalText, [module(user)]), Error, syntax_error(GoalText, Error)),
    (   ( nonvar(Unreadable) ; nonvar(Error) )
    ->  Status = 2
    ;   end_at_signals,
        treering(user:Goal, Options)
    ->  Status = 0
    ;   print_as_swipl([init_goal_failed(failed, GoalText), init_goal(failed, GoalText)]),
        Status = 1
    ).

syntax_error(GoalText, Error) :-
    print_as_swipl([init_goal_syntax(Error, GoalText), init_goal(syntax(Error), GoalText)]).

raised(_, '$aborted', 2) :- !.          % another thread has halted
raised(_, unwind(abort), 2) :- !.
raised(_, unwind(halt(Status0)), Status) :-
    !,
    Status = Status0.
raised(GoalText, Error0, 2) :-
    without_our_caller(Error0, Error),
    print_as_swipl([init_goal_failed(Error, GoalText), init_goal(goal_raised(Error), GoalText)]).

%   The caller of an undefined goal is a predicate of the command, which the message leaves out.

without_our_caller(error(existence_error(procedure, Name), context(Caller, _)), Error) :-
    nonvar(Caller),
    strip_module(Caller, _, Plain),
    memberchk(Plain, ['$c_call_prolog'/0, '<meta-call>'/1, catch/3]),
    !,
    Error = error(existence_error(procedure, Name), _).
without_our_caller(Error, Error).

%   Says where a predicate that does not exist was looked for. Without a main/0 of the program, that of library(main) is
%   loaded, and calls a main/1 that there is not either.

say_if_undefined(Error, Program) :-
    nonvar(Error),
    Error = error(existence_error(procedure, Name0), _),
    !,
    strip_module(user:Name0, Module, Name1),
    (   Name1 == main/1,
        predicate_property(user:main, imported_from(_))
    ->  Name = main/0
    ;   Module == user
    ->  Name = Name1
    ;   Name = Module:Name1
    ),
    print_message(error, treering(undefined(Name, Program))).
say_if_undefined(_, _).

%   The messages of the option -g, which have other names in other versions: the first that is known.

print_as_swipl(Messages) :-
    member(Message, Messages),
    message_to_text(Message, Text),
    \+ sub_string(Text, 0, _, _, "Unknown message"),
    !,
    print_message(error, Message).
print_as_swipl([Message|_]) :-
    print_message(error, Message).

%   A signal that ends swipl ends the profile first. What the program does at signals holds instead of this.

end_at_signals :-
    forall(member(Signal, [int,term,hup]),
           (   on_signal(Signal, Old, Old),
               memberchk(Old, [default,'$foreign_function'(_)])
           ->  on_signal(Signal, _, treering:ended_by)
           ;   true
           )).

:- public
    ended_by/1.

ended_by(Signal) :-
    profiler(_, false),
    end_early,
    on_signal(Signal, _, default),
    current_prolog_flag(pid, Pid),
    catch(process_kill(Pid, Signal), _, true),
    sleep(1),
    nth0(At, [hup,int], Signal),            % not by the signal, where it cannot be sent
    Status is 129+At,
    halt(Status).
ended_by(_) :-
    halt(143).

%   Tells the command that the goal is about to run. Programs that the goal starts are not to tell it anything.

:- dynamic
    told/1.

tell_begun :-
    (   getenv('TREERING_PROLOG_TOLD', Told)
    ->  assertz(told(Told)),
        unsetenv('TREERING_PROLOG_TOLD'),
        atom_concat(Told, '.begun', File),
        open(File, write, Out),
        close(Out)
    ;   true
    ).

%   Tells the command which file is written.

tell_file(File) :-
    (   ( told(Told) ; getenv('TREERING_PROLOG_TOLD', Told) )
    ->  setup_call_cleanup(
            open(Told, write, Out, [encoding(utf8)]),
            format(Out, '~w', [File]),
            close(Out))
    ;   true
    ).


                 /*******************************
                 *        ENDING EARLY          *
                 *******************************/

:- at_halt(end_early).
:- initialization(load_library).

end_early :-
    forall(active(Kind), ignore(catch(end_early(Kind), _, true))).

end_early(ports(Settings)) :-
    '$tr_record'(false),
    say_uncounted(Settings),
    '$tr_facts'(Text),
    retractall(active(_)),
    '$tr_end'(true),
    facts(Text, File, _, _, Rows),
    report_ports(Settings, File, Rows).
end_early(ticks(Label, Start, Settings, Thread)) :-
    (   thread_self(Thread)
    ->  profiler(_, false),
        end_ticks(Label, Start, Settings)
    ;   ask_to_end(Thread)
    ).
end_early(kernel(Label, Start, Settings, Thread)) :-
    thread_self(Self),
    (   ( Self == Thread ; is_engine(Self) )
    ->  end_kernel(Label, Start, Settings)
    ;   ask_to_end(Thread)
    ).

%   These two profiles are those of a thread, and only this can end them. Another thread that halts asks for
%   it, and waits a while for a goal that does not come back from foreign code. The thread does not come back to an
%   engine that it runs itself.

ask_to_end(Thread) :-
    thread_self(Self),
    message_queue_create(Queue),
    (   \+ is_engine(Self),
        thread_signal(Thread, treering:end_for(Queue)),
        thread_get_message(Queue, ended, [timeout(10)])
    ->  true
    ;   say(warning, treering(not_ended(Thread)))
    ).

end_for(Queue) :-
    end_early,
    thread_send_message(Queue, ended).
