//! Lanes: which caller plays which record.

/// The part of a tape that one caller plays: every n-th group of records, again and again.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    first: u64,
    /// The number of records between the end of a group and the start of the next one.
    skip: u64,
    group: u64,
    count: u64,
    next: u64,
    /// Records left in the current group.
    left: u64,
    pass: u64,
}

impl Lane {
    /// Lane `number` of `lanes` on a tape with `op_count` records. `group` must divide `op_count`.
    /// `None` if the lane has no record.
    pub fn new(number: u64, lanes: u64, op_count: u64, group: u64) -> Option<Lane> {
        (number < lanes.min(op_count / group)).then_some(Lane {
            first: number * group,
            skip: (lanes - 1) * group,
            group,
            count: op_count,
            next: number * group,
            left: group,
            pass: 0,
        })
    }

    /// The number of the next record, and how often the lane has started again from its first record.
    #[inline]
    pub fn next_record(&mut self) -> (u64, u64) {
        let step = (self.next, self.pass);
        self.next += 1;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.group;
            self.next += self.skip;
            if self.next >= self.count {
                self.next = self.first;
                self.pass += 1;
            }
        }
        step
    }

    /// The numbers of the records that it still has in this pass.
    pub fn one_pass(mut self) -> impl Iterator<Item = u64> {
        let pass = self.pass;
        std::iter::from_fn(move || (self.pass == pass).then(|| self.next_record().0))
    }

    /// The next result of `next_record`.
    #[inline]
    pub fn peek(&self) -> (u64, u64) {
        (self.next, self.pass)
    }
}
