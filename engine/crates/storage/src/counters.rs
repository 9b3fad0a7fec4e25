//! The store's counters.

/// The counts of a region or of the store since it was made or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub get_hits: u64,
    pub get_misses: u64,
    pub get_expired: u64,
    /// Requests for items that a flush had removed.
    pub get_flushed: u64,
    pub sets: u64,
    pub touch_hits: u64,
    pub touch_misses: u64,
    pub delete_hits: u64,
    pub delete_misses: u64,
    pub incr_hits: u64,
    pub incr_misses: u64,
    pub decr_hits: u64,
    pub decr_misses: u64,
    pub cas_hits: u64,
    pub cas_misses: u64,
    pub cas_badval: u64,
    pub total_items: u64,
    pub evictions: u64,
    pub evicted_unfetched: u64,
    /// Evicted items that would have expired later.
    pub evicted_with_expiry: u64,
    /// Items that no client had read when they expired, and that were removed without a request for them.
    pub expired_unfetched: u64,
    /// Items for which there was no room.
    pub no_room: u64,
    /// Items that had expired or were flushed, and that the store removed by itself.
    pub reclaimed: u64,
    /// Items that had expired, and that were removed because a user asked for it.
    pub crawler_reclaimed: u64,
}

impl Counters {
    pub fn add(&mut self, other: &Counters) {
        self.get_hits += other.get_hits;
        self.get_misses += other.get_misses;
        self.get_expired += other.get_expired;
        self.get_flushed += other.get_flushed;
        self.sets += other.sets;
        self.touch_hits += other.touch_hits;
        self.touch_misses += other.touch_misses;
        self.delete_hits += other.delete_hits;
        self.delete_misses += other.delete_misses;
        self.incr_hits += other.incr_hits;
        self.incr_misses += other.incr_misses;
        self.decr_hits += other.decr_hits;
        self.decr_misses += other.decr_misses;
        self.cas_hits += other.cas_hits;
        self.cas_misses += other.cas_misses;
        self.cas_badval += other.cas_badval;
        self.total_items += other.total_items;
        self.evictions += other.evictions;
        self.evicted_unfetched += other.evicted_unfetched;
        self.evicted_with_expiry += other.evicted_with_expiry;
        self.expired_unfetched += other.expired_unfetched;
        self.no_room += other.no_room;
        self.reclaimed += other.reclaimed;
        self.crawler_reclaimed += other.crawler_reclaimed;
    }
}
