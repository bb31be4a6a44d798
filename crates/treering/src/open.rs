//! Opens a profile of any format that Treering reads, recognised by content.
