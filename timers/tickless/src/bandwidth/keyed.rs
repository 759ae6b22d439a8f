//! Rate limits by key, such as an address, a user or a tenant.
//!
//! - A compact key takes two words in a table, which count its permits. It has no lock, timer or
//!   group. When a caller wants to wait for permits, a [`Limiter`] replaces the two words until no
//!   caller uses that limiter any more.
//! - Taking permits locks one shard of the table for reading. Adding a key, refilling a key once a
//!   period, and removing idle keys lock it for writing.
//! - A key that has all its permits behaves like an unknown key. A shard is swept for such keys
//!   whenever its number of keys has doubled: amortized O(1) per added key.
//! - While a shard is locked, no key is cloned or dropped, which would run the user's code. Nor are
//!   permits taken from a limiter, or a limiter dropped: that can wake a task, or wait for a
//!   refill.

use super::controller::{Begin, Controller};
use super::limiter::{AcquireError, Limiter, check_clock, refusal};
use super::plan::{BandwidthBuilder, Plan};
use crate::platform::fork::OfProcess;
use crate::timers::Timers;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tickless_core::bandwidth::{BandwidthError, Permits, Take};
use tickless_core::phase::Phase;
use tickless_core::time::Ns;

/// A rate limit for each key: a number of permits per period; from [`BandwidthBuilder::keyed`].
/// Cheap to clone.
///
/// Every key starts with the most permits that it can hold: a period's permits plus
/// [`extra`](BandwidthBuilder::<Limiter>::extra). An entry takes about 40 bytes besides the key
/// itself. Keys that have all their permits again are removed, so the table holds about as many
/// keys as were used within the last few periods.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::Duration;
/// use tickless::bandwidth::{AcquireError, KeyedLimiter};
///
/// let timers = tickless::Timers::process()?;
/// let limiter: KeyedLimiter<IpAddr> = timers.limiter(2, Duration::from_secs(1)).keyed()?;
/// let address = IpAddr::from([192, 0, 2, 1]);
/// limiter.try_acquire(&address, 2)?;
/// assert_eq!(limiter.try_acquire(&address, 1), Err(AcquireError::Empty));
/// limiter.try_acquire(&IpAddr::from([192, 0, 2, 2]), 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedLimiter<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    timers: Timers,
    plan: Plan,
    hasher: RandomState,
    shards: OfProcess<Box<[RwLock<Shard<K>>]>>,
}

struct Shard<K> {
    keys: HashTable<Keyed<K>>,
    /// When the shard has this many keys, the next insertion first removes the idle ones.
    sweep_at: usize,
}

struct Keyed<K> {
    key: K,
    state: KeyState,
}

enum KeyState {
    Compact(Permits<AtomicU64>),
    /// A caller has obtained a limiter for this key, and perhaps waits for its permits.
    Limiter(Limiter),
}

/// The number of shards. A sweep locks one shard, so it delays few callers.
const SHARDS: usize = 64;
/// A shard with fewer keys than this is not swept.
const SWEEP_MIN: usize = 32;

impl<K> Clone for KeyedLimiter<K> {
    fn clone(&self) -> Self {
        KeyedLimiter { inner: Arc::clone(&self.inner) }
    }
}

impl<K> fmt::Debug for KeyedLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter").field("plan", &self.inner.plan).finish_non_exhaustive()
    }
}

impl BandwidthBuilder<Limiter> {
    /// Starts a rate limit for each key, with `HashMap`'s default hasher. Allocates. Keys are
    /// hashed and compared under a lock: `Hash` and `Eq` must not use this limiter.
    ///
    /// # Errors
    ///
    /// Fails as [`start`](BandwidthBuilder::<Limiter>::start) does.
    pub fn keyed<K: Hash + Eq>(self) -> Result<KeyedLimiter<K>, BandwidthError> {
        self.plan.settings.check()?;
        if self.timers.shared.is_forked_child() {
            return Err(BandwidthError::NoTimers);
        }
        let shard = || RwLock::new(Shard { keys: HashTable::new(), sweep_at: SWEEP_MIN });
        let shards = OfProcess::new(std::iter::repeat_with(shard).take(SHARDS).collect());
        let hasher = RandomState::new();
        let inner = Inner { timers: self.timers, plan: self.plan, hasher, shards };
        Ok(KeyedLimiter { inner: Arc::new(inner) })
    }
}

impl<K: Hash + Eq> KeyedLimiter<K> {
    /// Takes a key's permits if they are available. Never waits for permits. Hashes the key once
    /// and locks one of 64 shards: for writing on the first call of a period, otherwise for
    /// reading. Clones the key and allocates for a new key.
    ///
    /// # Errors
    ///
    /// Fails as [`Limiter::try_acquire`] does.
    pub fn try_acquire<Q>(&self, key: &Q, permits: u64) -> Result<(), AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let inner = &*self.inner;
        let (hash, now) = inner.enter(key)?;
        let found = inner.read(hash).find(hash, key).map(|state| state.take(permits, now));
        let taken = match found {
            Some(Ok(Take::AskGroup)) | None => inner.with_key(hash, key, now, |state| {
                if let KeyState::Compact(compact) = state {
                    compact.refill(&inner.plan.settings, now);
                }
                state.take(permits, now)
            }),
            Some(found) => found,
        };
        match taken {
            Err(limiter) => limiter.try_acquire(permits),
            Ok(Take::Taken) => Ok(()),
            // No caller waits for permits of a key without a limiter, so a request for zero permits
            // always succeeds.
            _ if permits == 0 => Ok(()),
            _ => Err(refusal(permits, inner.plan.settings.most())),
        }
    }

    /// Returns the limiter of one key, to wait for its permits:
    /// `keyed.limiter("alice")?.acquire(1).await`. It starts with the permits that the key has
    /// left. While it exists, calls by key and calls of the limiter share its permits. Like any
    /// [`Limiter`], it has a timer and takes a few hundred bytes until it is dropped.
    ///
    /// # Errors
    ///
    /// [`NoTimers`](AcquireError::NoTimers) and [`OtherClock`](AcquireError::OtherClock), as
    /// [`Limiter::try_acquire`] does.
    pub fn limiter<Q>(&self, key: &Q) -> Result<Limiter, AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let inner = &*self.inner;
        let (hash, now) = inner.enter(key)?;
        inner.with_key(hash, key, now, |state| inner.limiter_of(state, now))
    }

    /// Returns how many permits the caller can take for a key now; 0 if the caller is on
    /// [another clock](AcquireError::OtherClock). An unknown key has the most that it can hold.
    /// O(1).
    pub fn available<Q>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let inner = &*self.inner;
        let Ok((hash, now)) = inner.enter(key) else { return 0 };
        let limiter = match inner.read(hash).find(hash, key) {
            None => return inner.plan.settings.most(),
            Some(KeyState::Compact(compact)) => {
                return compact.available(&inner.plan.settings, now);
            }
            Some(KeyState::Limiter(limiter)) => limiter.clone(),
        };
        limiter.available()
    }

    /// Returns how long a caller must wait until it can take `permits` permits of a key; zero if it
    /// can take them now. O(1).
    ///
    /// # Errors
    ///
    /// Fails as [`Limiter::retry_after`] does.
    pub fn retry_after<Q>(&self, key: &Q, permits: u64) -> Result<Duration, AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let inner = &*self.inner;
        let (hash, now) = inner.enter(key)?;
        let settings = &inner.plan.settings;
        if permits > settings.most() {
            return Err(AcquireError::NeverEnough { most: settings.most() });
        }
        let limiter = match inner.read(hash).find(hash, key) {
            None => return Ok(Duration::ZERO),
            Some(KeyState::Compact(compact)) => {
                let at = compact.available_at(settings, permits, now);
                return Ok(at.since(now).to_duration());
            }
            Some(KeyState::Limiter(limiter)) => limiter.clone(),
        };
        limiter.retry_after(permits)
    }

    /// Returns how many keys are in the table. Locks each of the 64 shards for reading, in turn.
    pub fn len(&self) -> usize {
        let is_forked_child = self.inner.timers.shared.is_forked_child();
        let shards = self.inner.shards.iter().filter(|_| !is_forked_child);
        shards.map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).keys.len()).sum()
    }

    /// Returns `true` if the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the keys that have all their permits, and frees the limiters that no caller uses any
    /// more. A call that adds a key sometimes does this, too. Returns how many keys it removed.
    /// O(number of keys); locks one of the 64 shards at a time.
    pub fn remove_idle(&self) -> usize {
        if self.inner.timers.shared.is_forked_child() {
            return 0;
        }
        let now = self.inner.timers.shared.now();
        let sweep = |lock: &RwLock<Shard<K>>| {
            let mut shard = lock.write().unwrap_or_else(PoisonError::into_inner);
            let swept = shard.sweep(&self.inner, now);
            let hash_of = |keyed: &Keyed<K>| self.inner.hasher.hash_one(&keyed.key);
            shard.keys.shrink_to(SWEEP_MIN, hash_of);
            drop(shard);
            swept.0.len()
        };
        self.inner.shards.iter().map(sweep).sum()
    }
}

impl<K: Hash + Eq> Inner<K> {
    /// Returns the key's hash and the current time, which every call by key needs first. Fails in a
    /// forked child, where no timers run, and for a caller on another clock.
    fn enter<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(u64, Ns), AcquireError> {
        if self.timers.shared.is_forked_child() {
            return Err(AcquireError::NoTimers);
        }
        check_clock(&self.timers)?;
        Ok((self.hasher.hash_one(key), self.timers.shared.now()))
    }

    /// Returns the shard for keys with this hash. All bits of the hash affect the choice, because a
    /// program's hasher can leave most of them zero.
    fn shard(&self, hash: u64) -> &RwLock<Shard<K>> {
        // Fibonacci hashing: the factor is 2^64 divided by the golden ratio.
        &self.shards[(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS]
    }

    fn read(&self, hash: u64) -> RwLockReadGuard<'_, Shard<K>> {
        self.shard(hash).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Shard<K>> {
        self.shard(hash).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a key's state under the shard's write lock. Adds the key if it is unknown.
    fn with_key<Q, R>(
        &self,
        hash: u64,
        key: &Q,
        now: Ns,
        work: impl FnOnce(&mut KeyState) -> R,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut shard = self.write(hash);
        if let Some(keyed) = shard.keys.find_mut(hash, |keyed| keyed.key.borrow() == key) {
            return work(&mut keyed.state);
        }
        // Clone the key without the lock: its `to_owned` is the user's code.
        drop(shard);
        let key = key.to_owned();
        let mut shard = self.write(hash);
        let swept = match shard.keys.len() >= shard.sweep_at {
            true => shard.sweep(self, now),
            false => Default::default(),
        };
        let hash_of = |keyed: &Keyed<K>| self.hasher.hash_one(&keyed.key);
        let (done, spare) = match shard.keys.entry(hash, |keyed| keyed.key == key, hash_of) {
            // Another thread has added the key since the lock was released.
            Entry::Occupied(mut found) => (work(&mut found.get_mut().state), Some(key)),
            Entry::Vacant(vacant) => {
                let state = KeyState::Compact(Permits::full(&self.plan.settings, now));
                (work(&mut vacant.insert(Keyed { key, state }).into_mut().state), None)
            }
        };
        drop(shard);
        drop((spare, swept));
        done
    }

    /// Returns the key's limiter, or makes one with the permits that the key has left.
    fn limiter_of(&self, state: &mut KeyState, now: Ns) -> Result<Limiter, AcquireError> {
        let compact = match state {
            KeyState::Limiter(limiter) => return Ok(limiter.clone()),
            KeyState::Compact(compact) => compact,
        };
        let (left, until) = compact.refill(&self.plan.settings, now);
        let phase = Phase::Fixed(Duration::from_nanos(until.0 % self.plan.settings.period.0));
        let begin = Begin::With(left, until);
        // Since the settings and the phase are valid, the start fails only in a forked child.
        let controller = Controller::start(&self.timers, Plan { phase, ..self.plan }, begin)
            .map_err(|_| AcquireError::NoTimers)?;
        let limiter = Limiter { controller };
        *state = KeyState::Limiter(limiter.clone());
        Ok(limiter)
    }
}

impl KeyState {
    /// Takes permits of a compact key. If the key has a limiter, returns it as the error: the
    /// caller unlocks the shard before it takes permits from the limiter, which can wake a waiter.
    fn take(&self, permits: u64, now: Ns) -> Result<Take, Limiter> {
        match self {
            KeyState::Limiter(limiter) => Err(limiter.clone()),
            KeyState::Compact(compact) => Ok(compact.take(permits, now)),
        }
    }
}

impl<K> Shard<K> {
    fn find<Q>(&self, hash: u64, key: &Q) -> Option<&KeyState>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.keys.find(hash, |keyed| keyed.key.borrow() == key).map(|keyed| &keyed.state)
    }

    /// Removes the keys that have all their permits, and turns keys whose limiter no caller uses
    /// any more into compact ones. O(number of keys). The caller drops the results after unlocking
    /// the shard.
    fn sweep(&mut self, inner: &Inner<K>, now: Ns) -> (Vec<Keyed<K>>, Vec<Limiter>) {
        let (mut removed, mut limiters) = (Vec::new(), Vec::new());
        let settings = &inner.plan.settings;
        for keyed in self.keys.iter_mut() {
            let KeyState::Limiter(limiter) = &keyed.state else { continue };
            // A count of 1 means that only the table uses the limiter. It stays 1 here: new handles
            // are cloned from this one, under the lock that this thread holds.
            if Arc::strong_count(&limiter.controller) > 1 {
                continue;
            }
            if let Some((left, until)) = limiter.controller.remains() {
                let compact = KeyState::Compact(Permits::with(left.min(settings.most()), until));
                if let KeyState::Limiter(old) = std::mem::replace(&mut keyed.state, compact) {
                    limiters.push(old);
                }
            }
        }
        let is_full = |keyed: &mut Keyed<K>| match &keyed.state {
            KeyState::Compact(compact) => compact.refill(settings, now).0 >= settings.most(),
            KeyState::Limiter(_) => false,
        };
        removed.extend(self.keys.extract_if(is_full));
        self.sweep_at = (2 * self.keys.len()).max(SWEEP_MIN);
        (removed, limiters)
    }
}
