//! Who plays which record.

/// One caller's share of a tape: every so many groups of records, over and over.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    first: u64,
    /// From the last record of one group to the first of the next.
    skip: u64,
    group: u64,
    count: u64,
    next: u64,
    /// Records of the group that are still to come.
    left: u64,
    pass: u64,
}

impl Lane {
    /// Lane `number` of `lanes` over a tape of `op_count` records in groups of `group`, which
    /// divides it; `None` if it has no record.
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

    /// The next record's number, and how often the lane has begun again.
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

    /// What `step` would return.
    #[inline]
    pub fn peek(&self) -> (u64, u64) {
        (self.next, self.pass)
    }
}
