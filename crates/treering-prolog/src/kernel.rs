//! Exact calls and times from inside of SWI-Prolog's kernel.
//!
//! The kernel's profiler calls three functions: for every call, exit and redo. Where their machine code
//! is what [`signature`](crate::signature) expects, byte by byte, each is made to jump here while a goal
//! runs. The nodes are ours then, and start with the words that the kernel's have: it keeps them in its
//! frames and choice points, and its timer adds ticks to them.
//!
//! Nodes are never freed, since frames may hold on to them.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::exclusive::Exclusive;
use crate::signature::{self, CALL, PROF_CALL, PROF_EXIT, REDO_AT, RESUME};

unsafe extern "C" {
    fn PL_prof_call(handle: *mut c_void, sort: *mut c_void) -> *mut c_void;
    fn PL_prof_exit(node: *mut c_void);
}

/// A node of the tree. The first twelve words are those of the kernel's.
#[repr(C)]
struct Node {
    magic: u64,
    parent: *mut Node,
    predicate: usize,
    sort: *const Sort,
    calls: u64,
    redos: u64,
    exits: u64,
    recursive: u64,
    ticks: u64,
    child_ticks: u64,
    next: *mut Node,
    children: *mut Node,
    /// Ticks of our clock that passed in the node itself.
    self_ticks: u64,
    /// Its number in the text that [`lines`] has written.
    number: u64,
}

/// `PL_prof_type_t` of `SWI-Prolog.h`, of which the first function makes a term of a predicate.
#[repr(C)]
pub(crate) struct Sort {
    unify: Option<unsafe extern "C" fn(usize, usize) -> c_int>,
}

/// The first word of the kernel's nodes.
const MAGIC: u64 = 0x7ae3_8f24;

/// The recording.
struct Core {
    /// Above all roots; its time is the time outside of any predicate.
    top: *mut Node,
    current: *mut Node,
    last: u64,
    /// Where the record of a thread has the current node.
    current_at: usize,
    /// When it began, in ticks and in nanoseconds, and how long a tick is; known at the end.
    began: (u64, u64),
    ns_per_tick: f64,
    saved: Vec<(u64, [u8; JUMP])>,
    predicates: Vec<(usize, *const Sort)>,
}

// SAFETY: the nodes that it points to are its own, and used only by who has it.
unsafe impl Send for Core {}

static CORE: Exclusive<Option<Core>> = Exclusive::new(None);
static IS_PLACED: AtomicBool = AtomicBool::new(false);

fn new_node(parent: *mut Node, predicate: usize, sort: *const Sort) -> *mut Node {
    let next = if parent.is_null() {
        core::ptr::null_mut()
    } else {
        // SAFETY: nodes are never freed.
        unsafe { (*parent).children }
    };
    let node = Box::into_raw(Box::new(Node {
        magic: MAGIC,
        parent,
        predicate,
        sort,
        calls: 0,
        redos: 0,
        exits: 0,
        recursive: 0,
        ticks: 0,
        child_ticks: 0,
        next,
        children: core::ptr::null_mut(),
        self_ticks: 0,
        number: 0,
    }));
    if !parent.is_null() {
        // SAFETY: the parent is not null, and is a node of this tree, which nobody else changes meanwhile.
        unsafe { (*parent).children = node };
    }
    node
}

impl Core {
    /// Charges the time since the last event to the current node.
    #[inline(always)]
    fn charge(&mut self) {
        let now = treering_runtime::ticks();
        // SAFETY: the current node is one of ours.
        unsafe { (*self.current).self_ticks += now.wrapping_sub(self.last) };
        self.last = now;
    }

    /// The node of a call, by the kernel's rule: a predicate that calls itself stays in its node, and an
    /// arc that is on the path leads back up to it.
    #[inline(always)]
    fn called(&mut self, predicate: usize, sort: *const Sort) -> *mut Node {
        let current = self.current;
        // SAFETY: all nodes are ours, and never freed.
        unsafe {
            if (*current).predicate == predicate && current != self.top {
                (*current).recursive += 1;
                return current;
            }
            let caller = (*current).predicate;
            let mut node = if current == self.top { core::ptr::null_mut() } else { (*current).parent };
            while !node.is_null() && node != self.top {
                let above = (*node).parent;
                if (*node).predicate == predicate && above != self.top && (*above).predicate == caller {
                    (*node).recursive += 1;
                    return node;
                }
                node = above;
            }
            let mut node = (*current).children;
            while !node.is_null() {
                if (*node).predicate == predicate {
                    (*node).calls += 1;
                    return node;
                }
                node = (*node).next;
            }
            let node = new_node(current, predicate, sort);
            (*node).calls = 1;
            node
        }
    }

    /// Makes a node the current one, for the kernel as well.
    ///
    /// # Safety
    /// `thread` is the kernel's record of the running thread.
    #[inline(always)]
    unsafe fn set_current(&mut self, thread: *mut u8, node: *mut Node) {
        self.current = if node.is_null() { self.top } else { node };
        // SAFETY: the machine code has told where it is.
        unsafe { thread.add(self.current_at).cast::<*mut Node>().write(node) };
    }
}

/// In place of the kernel's function for calls.
unsafe extern "C" fn called(thread: *mut u8, predicate: usize, sort: *const Sort) -> *mut Node {
    // It is in use while another thread, which halts, ends the recording.
    let event = CORE.try_with(|core| {
        let core = core.as_mut()?;
        core.charge();
        let node = core.called(predicate, sort);
        // SAFETY: the kernel has given its record.
        unsafe { core.set_current(thread, node) };
        Some(node)
    });
    event.flatten().unwrap_or(core::ptr::null_mut())
}

/// In place of the kernel's functions for exits and redos, which make a node the current one.
unsafe extern "C" fn turned_to(thread: *mut u8, node: *mut Node) {
    // SAFETY: a node of another sort is one that the program has registered, which starts with a word.
    if !node.is_null() && unsafe { (*node).magic } != MAGIC {
        return;
    }
    CORE.try_with(|core| {
        if let Some(core) = core {
            core.charge();
            // SAFETY: the kernel has given its record.
            unsafe { core.set_current(thread, node) };
        }
    });
}

/// Bytes of a jump to any address: `mov rax, address; jmp rax`.
const JUMP: usize = 12;

fn jump(to: u64) -> [u8; JUMP] {
    let mut code = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    code[2..10].copy_from_slice(&to.to_le_bytes());
    code
}

/// The process's memory, which can be written where the pages themselves may not.
fn memory() -> Result<File, String> {
    let opened = File::options().read(true).write(true).open("/proc/self/mem");
    opened.map_err(|error| format!("the memory of this process cannot be written: {error}"))
}

/// Where the functions are, and what their code tells.
struct Places {
    call: u64,
    resume: u64,
    current_at: usize,
}

fn places(memory: &File) -> Result<Places, String> {
    let expect = |what: &str, pattern: &str, at: u64| {
        let mut code = vec![0; signature::length(pattern)];
        let read = memory.read_exact_at(&mut code, at).is_ok();
        let numbers = read.then(|| signature::numbers(pattern, &code)).flatten();
        numbers.ok_or_else(|| format!("the code of {what} is not the one that is known"))
    };
    let target = |what: &str, pattern: &str, at: u64| {
        let numbers = expect(what, pattern, at)?;
        let distance = numbers.get(&b'J').copied().unwrap_or(0);
        Ok::<_, String>(
            at.wrapping_add(signature::length(pattern) as u64).wrapping_add_signed(distance.into()),
        )
    };
    let call = target("PL_prof_call", PROF_CALL, PL_prof_call as *const () as u64)?;
    let resume = target("PL_prof_exit", PROF_EXIT, PL_prof_exit as *const () as u64)?;
    let (in_call, in_resume) = (expect("calls", CALL, call)?, expect("exits", RESUME, resume)?);
    let current = in_call.get(&b'C').copied().unwrap_or(0);
    if in_resume.get(&b'C') != Some(&current) || in_call.get(&b'A') != in_resume.get(&b'A') || current <= 0 {
        return Err("the functions disagree on where the current node is".to_owned());
    }
    Ok(Places { call, resume, current_at: current as usize })
}

/// Why the kernel cannot be hooked, if so. Nothing is changed.
pub(crate) fn problem() -> Option<String> {
    memory().and_then(|memory| places(&memory)).err()
}

/// Begins a recording in this thread; SWI-Prolog's profiler has to be reset before, and switched on next.
///
/// # Errors
/// Why the kernel cannot be hooked. Nothing is changed then.
pub(crate) fn begin() -> Result<(), String> {
    if IS_PLACED.swap(true, Ordering::AcqRel) {
        return Err("a goal is being profiled already".to_owned());
    }
    let begun = place();
    if begun.is_err() {
        IS_PLACED.store(false, Ordering::Release);
    }
    begun
}

fn place() -> Result<(), String> {
    let memory = memory()?;
    let Places { call, resume, current_at } = places(&memory)?;
    let hooks = [
        (call, called as *const () as u64),
        (resume, turned_to as *const () as u64),
        (resume + REDO_AT, turned_to as *const () as u64),
    ];
    let mut saved = Vec::new();
    for (at, _) in hooks {
        let mut code = [0; JUMP];
        memory.read_exact_at(&mut code, at).map_err(|error| error.to_string())?;
        saved.push((at, code));
    }
    let top = new_node(core::ptr::null_mut(), 0, core::ptr::null());
    let began = treering_runtime::ticks_and_ns();
    let last = began.0;
    let new =
        Core { top, current: top, last, current_at, began, ns_per_tick: 1.0, saved, predicates: Vec::new() };
    CORE.with(|core| *core = Some(new));
    for (at, to) in hooks {
        if let Err(error) = memory.write_all_at(&jump(to), at) {
            CORE.with(|core| core.as_ref().map(restore));
            return Err(format!("the memory of this process cannot be written: {error}"));
        }
    }
    CORE.with(|core| {
        if let Some(core) = core {
            core.began = treering_runtime::ticks_and_ns();
            core.last = core.began.0;
        }
    });
    Ok(())
}

fn restore(core: &Core) {
    let Ok(memory) = memory() else { return };
    for (at, code) in &core.saved {
        // The code could be written before, so it can be written again.
        let _ = memory.write_all_at(code, *at);
    }
}

/// Ends the recording and gives the kernel its functions back. The recording stays readable until the next
/// begins.
pub(crate) fn end() {
    if IS_PLACED.load(Ordering::Acquire) {
        CORE.with(|core| {
            let Some(core) = core else { return };
            core.charge();
            let (began, ended) = (core.began, treering_runtime::ticks_and_ns());
            let passed = ended.0.wrapping_sub(began.0).max(1);
            core.ns_per_tick = ended.1.saturating_sub(began.1) as f64 / passed as f64;
            restore(core);
        });
        IS_PLACED.store(false, Ordering::Release);
    }
}

/// The tree as lines: the number of the caller's node or 0, that of the predicate from 1, calls, recursive
/// ones among them, nanoseconds; tabulators between them. The first line has the time outside of all
/// predicates, and the whole time.
pub(crate) fn lines() -> String {
    CORE.with(|core| core.as_mut().map(tree)).unwrap_or_default()
}

fn tree(core: &mut Core) -> String {
    let ns_per_tick = core.ns_per_tick;
    let ns = |ticks: u64| (ticks as f64 * ns_per_tick + 0.5) as u64;
    core.predicates.clear();
    let mut numbers = std::collections::HashMap::new();
    let mut text = String::new();
    let (mut count, mut all) = (0, 0_u64);
    // SAFETY: all nodes are ours, and never freed; nothing records any more.
    unsafe {
        let mut left = vec![(*core.top).children];
        let mut siblings = Vec::new();
        while let Some(first) = left.pop() {
            let mut node = first;
            siblings.clear();
            while !node.is_null() {
                siblings.push(node);
                node = (*node).next;
            }
            // The oldest first.
            for &node in siblings.iter().rev() {
                count += 1;
                (*node).number = count;
                let parent = if (*node).parent == core.top { 0 } else { (*(*node).parent).number };
                let next = core.predicates.len() + 1;
                let predicate = *numbers.entry((*node).predicate).or_insert(next);
                if predicate == next {
                    core.predicates.push(((*node).predicate, (*node).sort));
                }
                let Node { calls, recursive, self_ticks, .. } = *node;
                let self_ns = ns(self_ticks);
                all += self_ns;
                text += &format!("{parent}\t{predicate}\t{}\t{recursive}\t{self_ns}\n", calls + recursive);
                left.push((*node).children);
            }
        }
        let outside = ns((*core.top).self_ticks);
        format!("{outside}\t{}\n{text}", all + outside)
    }
}

/// Makes a term of the predicate with a number from [`lines`].
pub(crate) fn unify_predicate(number: usize, term: usize) -> bool {
    let found = CORE.with(|core| core.as_ref()?.predicates.get(number.checked_sub(1)?).copied());
    let Some((predicate, sort)) = found else { return false };
    // SAFETY: the kernel has given both together, and the function is meant for this.
    unsafe {
        let unify = sort.as_ref().and_then(|sort| sort.unify);
        unify.is_some_and(|unify| unify(term, predicate) & 0xFF != 0)
    }
}
