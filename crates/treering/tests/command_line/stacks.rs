//! `treering record`: stacks that do not fit into the copied part, and other ways to unwind.

use treering_testing::programs::{DEEP_STACK, KNOWN_SHARES, Recipe};

use crate::session::{Session, program};

/// In every function that works, also in those that call none; see `burn.h`.
const FRAME_POINTERS: &[&str] = &["-fno-omit-frame-pointer", "-DWITH_FRAMES"];

fn build(recipe: Recipe) -> std::path::PathBuf {
    recipe.build().expect("the compiler is installed")
}

#[test]
fn stacks_beyond_the_copy_are_counted_as_cut_short() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(DEEP_STACK.recipe()), &["frame"]));
    assert!(flat.self_share("innermost") > 0.8, "{:#}", flat.0);
    let cut = flat.loss("truncated_stacks") as f64 / flat.samples() as f64;
    assert!(cut > 0.8, "{cut:.3} of the stacks are cut short, though no copy holds 256 KiB");
}

#[test]
fn the_chain_of_frame_pointers_continues_where_the_copy_ends() {
    let session = Session::new();
    let recipe = DEEP_STACK.variant("frame-pointers", FRAME_POINTERS);
    let flat = session.record(&[], &program(&build(recipe), &["frame"]));
    assert!(flat.total_share("large_frame") > 0.8, "{:#}", flat.0);
    assert!(flat.total_share("main") > 0.8, "{:#}", flat.0);
}

#[test]
fn a_leaf_without_a_frame_does_not_hide_its_callers_where_the_copy_ends() {
    let session = Session::new();
    // Compilers obey the option so: a function that calls none sets up no frame, so that
    // only the unwind tables know its caller.
    let recipe = DEEP_STACK.variant("frame-pointers-but-in-leaves", &["-fno-omit-frame-pointer"]);
    let flat = session.record(&[], &program(&build(recipe), &["frame"]));
    assert!(flat.self_share("innermost") > 0.8, "{:#}", flat.0);
    assert!(flat.total_share("large_frame") > 0.8, "{:#}", flat.0);
    assert!(flat.total_share("main") > 0.8, "{:#}", flat.0);
}

#[test]
fn deep_recursion_keeps_its_innermost_functions() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(DEEP_STACK.recipe()), &["depth", "5000"]));
    assert!(flat.self_share("innermost") > 0.8, "{:#}", flat.0);
    assert!(flat.total_share("descend") > 0.8 && flat.total_share("descend") <= 1.0, "{:#}", flat.0);
}

#[test]
fn frame_pointers_alone_are_enough_for_programs_that_have_them() {
    let session = Session::new();
    let recipe = KNOWN_SHARES.variant("frame-pointers", FRAME_POINTERS);
    let flat = session.record(&["--fp"], &program(&build(recipe), &[]));
    assert!(flat.total_share("main") > 0.9, "{:#}", flat.0);
    assert!((flat.total_share("first_half") - 0.5).abs() < 0.1, "{:#}", flat.0);
}

#[test]
fn stacks_deeper_than_the_copy_are_read_from_the_process() {
    let session = Session::new();
    let reached = |size: &str, depth: &str| {
        let flat =
            session.record(&["--stack", size], &program(&build(DEEP_STACK.recipe()), &["depth", depth]));
        flat.total_share("main")
    };
    // About 30 KiB of stack below main, and 600.
    let (near, far) = (reached("4k", "250"), reached("4k", "5000"));
    assert!(near > 0.9, "main is reached in {near:.3} of the cost");
    assert!(far < 0.2, "what is too deep is cut, but main is reached in {far:.3} of the cost");
}
