//! Doubly linked lists of items whose links are in one vector.

pub(crate) const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    newer: u32,
    older: u32,
}

impl Links {
    pub const NONE: Links = Links { newer: END, older: END };
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    newest: u32,
    pub oldest: u32,
}

impl Default for List {
    fn default() -> List {
        List { newest: END, oldest: END }
    }
}

impl List {
    pub fn add_newest(&mut self, links: &mut [Links], item: u32) {
        links[item as usize] = Links { newer: END, older: self.newest };
        match self.newest {
            END => self.oldest = item,
            before => links[before as usize].newer = item,
        }
        self.newest = item;
    }

    pub fn remove(&mut self, links: &mut [Links], item: u32) {
        let Links { newer, older } = links[item as usize];
        match newer {
            END => self.newest = older,
            newer => links[newer as usize].older = older,
        }
        match older {
            END => self.oldest = newer,
            older => links[older as usize].newer = newer,
        }
    }
}
