//! Reads records from bytes.

use crate::{
    Function, HEADER_BYTES, Header, LineCost, MAGIC, Module, Node, Point, Ref, Setting, Sizes, Text, Thread,
    UNIT, VERSION, VERSION_WITHOUT_CHECKS,
};

/// The bytes of a live file, as they were at one moment.
///
/// The file may be of a program that is running, or that was killed in the middle of an event, so
/// nothing here trusts what it reads: a record that is not there is nothing, and lists end.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) header: Header,
}

/// Why bytes are not a live file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// They begin with something else.
    NotLive,
    /// They end within the header.
    CutShort {
        /// How many bytes there are.
        length: usize,
    },
    /// Another version of the layout.
    OtherVersion {
        /// The version that the file states.
        version: u32,
    },
}

impl<'a> View<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// When the bytes are not a live file of this version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Damage> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(Damage::NotLive);
        }
        let header = Header::read(bytes).filter(|_| bytes.len() as u64 >= HEADER_BYTES);
        let header = header.ok_or(Damage::CutShort { length: bytes.len() })?;
        match header.version {
            VERSION => Ok(Self { bytes, header: header.decode() }),
            VERSION_WITHOUT_CHECKS => Ok(Self { bytes, header }),
            version => Err(Damage::OtherVersion { version }),
        }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the layout has checksums that show damage. The layout before this one has none.
    pub fn has_checks(&self) -> bool {
        self.header.version == VERSION
    }

    /// How many bytes there are.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// How many units the bytes take.
    pub(crate) fn units(&self) -> usize {
        self.bytes.len().div_ceil(UNIT as usize)
    }

    /// The bytes that begin at `at`; nothing for no record or one outside of the file.
    pub(crate) fn at(&self, at: Ref) -> Option<&'a [u8]> {
        let start = usize::try_from(u64::from(at) * UNIT).ok()?;
        self.bytes.get(start..).filter(|bytes| at != 0 && !bytes.is_empty())
    }

    /// The bytes of a text, or none where it is not whole.
    pub fn text(&self, text: Text) -> &'a [u8] {
        let range = || {
            let start = usize::try_from(text.at).ok()?;
            let end = start.checked_add(text.length as usize)?;
            self.bytes.get(start..end)
        };
        range().unwrap_or_default()
    }

    /// The record at `at`.
    pub fn function(&self, at: Ref) -> Option<Function> {
        Function::read(self.at(at)?)
    }

    /// The record at `at`.
    pub fn module(&self, at: Ref) -> Option<Module> {
        Module::read(self.at(at)?)
    }

    /// The record at `at`.
    pub fn node(&self, at: Ref) -> Option<Node> {
        self.read_node(self.at(at)?)
    }

    /// The record at `at`.
    pub fn sizes(&self, at: Ref) -> Option<Sizes> {
        let sizes = Sizes::read(self.at(at)?)?;
        Some(if self.has_checks() { sizes.decode() } else { sizes })
    }

    fn read_node(&self, bytes: &[u8]) -> Option<Node> {
        let node = Node::read(bytes)?;
        Some(if self.has_checks() { node.decode() } else { node })
    }

    fn read_thread(&self, bytes: &[u8]) -> Option<Thread> {
        let thread = Thread::read(bytes)?;
        Some(if self.has_checks() { thread.decode() } else { thread })
    }

    fn read_line(&self, bytes: &[u8]) -> Option<LineCost> {
        let line = LineCost::read(bytes)?;
        Some(if self.has_checks() { line.decode() } else { line })
    }

    /// Bytes that an open activation takes.
    pub(crate) fn activation_bytes(&self) -> usize {
        /// The bytes of an activation in the layout before, which has the same fields but the last two.
        const WITHOUT_CHECKS: usize = 40;
        if self.has_checks() { crate::Activation::BYTES } else { WITHOUT_CHECKS }
    }

    /// How many activations of a thread are open, that of its root not counted; no more than the
    /// file has room for.
    pub fn depth(&self, thread: &Thread) -> u32 {
        let of = |bytes: u64| u32::try_from(bytes / self.activation_bytes() as u64);
        let room = of(self.bytes.len() as u64).unwrap_or(u32::MAX);
        of(thread.top.saturating_sub(thread.stack_address)).unwrap_or(0).min(thread.capacity).min(room)
    }

    /// The place of the node that an open activation is of.
    pub fn node_of(&self, activation: &crate::Activation) -> Ref {
        Ref::try_from(activation.node.saturating_sub(self.header.base_address) / UNIT).unwrap_or(0)
    }

    /// The open activation number `index` of a thread; 0 is that of its root.
    pub fn activation(&self, thread: &Thread, index: u32) -> Option<crate::Activation> {
        let bytes = self.activation_bytes();
        let start = (index as usize).checked_mul(bytes)?;
        let stored = self.at(thread.stack)?.get(start..start.checked_add(bytes)?)?;
        let mut whole = [0; crate::Activation::BYTES];
        whole[..bytes].copy_from_slice(stored);
        crate::Activation::read(&whole)
    }

    /// All functions with their places.
    pub fn functions(&self) -> Chain<'a, Function> {
        self.chain(self.header.first_function, |_, bytes| Function::read(bytes), |function| function.next)
    }

    /// All modules with their places.
    pub fn modules(&self) -> Chain<'a, Module> {
        self.chain(self.header.first_module, |_, bytes| Module::read(bytes), |module| module.next)
    }

    /// All threads with their places.
    pub fn threads(&self) -> Chain<'a, Thread> {
        self.chain(self.header.first_thread, Self::read_thread, |thread| thread.next)
    }

    /// All points with their places.
    pub fn points(&self) -> Chain<'a, Point> {
        self.chain(self.header.first_point, |_, bytes| Point::read(bytes), |point| point.next)
    }

    /// All settings with their places.
    pub fn settings(&self) -> Chain<'a, Setting> {
        self.chain(self.header.first_setting, |_, bytes| Setting::read(bytes), |setting| setting.next)
    }

    /// The costs of a node's lines, with their places.
    pub fn lines(&self, node: &Node) -> Chain<'a, LineCost> {
        self.chain(node.lines, Self::read_line, |line| line.next)
    }

    /// The children of a node, with their places.
    pub fn children(&self, node: &Node) -> Chain<'a, Node> {
        self.chain(node.first_child, Self::read_node, |child| child.next_sibling)
    }

    fn chain<T>(&self, first: Ref, read: Reader<'a, T>, next: fn(&T) -> Ref) -> Chain<'a, T> {
        Chain { view: *self, at: first, left: self.bytes.len() / UNIT as usize, read, next }
    }
}

/// The records of a list, newest first, each with its place. Ends at a record that is not there,
/// and in any case after as many as the file can hold.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a, T> {
    view: View<'a>,
    at: Ref,
    left: usize,
    read: Reader<'a, T>,
    next: fn(&T) -> Ref,
}

/// How a record is read.
type Reader<'a, T> = fn(&View<'a>, &[u8]) -> Option<T>;

impl<T> Iterator for Chain<'_, T> {
    type Item = (Ref, T);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        let record = (self.read)(&self.view, self.view.at(at)?)?;
        self.at = (self.next)(&record);
        Some((at, record))
    }
}
