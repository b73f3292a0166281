//! Where the CPUs' time went: every charge is booked on the stack of kernel functions that made it.

use sched::access::Path;
use units::Ps;

/// What a frame of a stack is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// The work of one kind of task, by the number of its name; this is the bottom of every stack. 0 is the idle task.
    Comm(u32),
    /// User mode.
    User,
    /// Waiting in an idle state, by its number.
    Idle(u8),
    Kernel(Path),
}

#[derive(Clone, Debug)]
struct Node {
    frame: Frame,
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    time: Ps,
}

const NONE: u32 = u32::MAX;

/// A stack of a call tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(u32);

/// A call tree, and each CPU's position in it.
#[derive(Clone, Debug)]
pub struct CallTree {
    nodes: Vec<Node>,
    at: Vec<u32>,
    root: Vec<u32>,
    since: Ps,
}

impl CallTree {
    /// `since`: nothing earlier is booked.
    pub fn new(nr_cpus: usize, since: Ps) -> CallTree {
        let mut tree = CallTree { nodes: Vec::new(), at: Vec::new(), root: Vec::new(), since };
        tree.nodes.push(Node {
            frame: Frame::Comm(0),
            parent: NONE,
            first_child: NONE,
            next_sibling: NONE,
            time: Ps::ZERO,
        });
        tree.at = vec![0; nr_cpus];
        tree.root = vec![0; nr_cpus];
        tree
    }

    /// When booking began.
    pub fn since(&self) -> Ps {
        self.since
    }

    /// The task that a CPU runs from now on: its stacks begin with this name.
    #[cold]
    pub fn run(&mut self, cpu: usize, comm: u32) {
        let root = if comm == 0 { 0 } else { self.child(0, Frame::Comm(comm)) };
        self.root[cpu] = root;
        self.at[cpu] = root;
    }

    /// Puts a CPU into these functions of its task, the outermost first: a task that goes on in the middle of a system
    /// call has entered them before.
    #[cold]
    pub fn stand(&mut self, cpu: usize, frames: &[Path]) {
        self.at[cpu] = self.root[cpu];
        for &path in frames {
            self.enter(cpu, path);
        }
    }

    /// The function that a CPU stands in.
    pub fn here(&self, cpu: usize) -> Frame {
        self.function(self.place(cpu))
    }

    /// Where in the tree a CPU stands, for [`CallTree::add_at`].
    pub fn place(&self, cpu: usize) -> Place {
        Place(self.at[cpu])
    }

    /// The function of a place.
    pub fn function(&self, place: Place) -> Frame {
        self.nodes[place.0 as usize].frame
    }

    /// Books time at a place where a CPU stood before.
    pub fn add_at(&mut self, place: Place, time: Ps) {
        self.nodes[place.0 as usize].time += time;
    }

    #[inline]
    pub fn enter(&mut self, cpu: usize, path: Path) {
        self.at[cpu] = self.child(self.at[cpu], Frame::Kernel(path));
    }

    #[inline]
    pub fn leave(&mut self, cpu: usize) {
        let parent = self.nodes[self.at[cpu] as usize].parent;
        debug_assert_ne!(parent, NONE, "a function is left that was never entered");
        self.at[cpu] = parent;
    }

    #[inline]
    pub fn add(&mut self, cpu: usize, time: Ps) {
        self.nodes[self.at[cpu] as usize].time += time;
    }

    /// Books time outside kernel functions.
    #[cold]
    pub fn add_frame(&mut self, cpu: usize, frame: Frame, time: Ps) {
        let node = self.child(self.root[cpu], frame);
        self.nodes[node as usize].time += time;
    }

    fn child(&mut self, of: u32, frame: Frame) -> u32 {
        let mut at = self.nodes[of as usize].first_child;
        while at != NONE {
            if self.nodes[at as usize].frame == frame {
                return at;
            }
            at = self.nodes[at as usize].next_sibling;
        }
        let new = self.nodes.len() as u32;
        let next_sibling = self.nodes[of as usize].first_child;
        self.nodes.push(Node { frame, parent: of, first_child: NONE, next_sibling, time: Ps::ZERO });
        self.nodes[of as usize].first_child = new;
        new
    }

    /// Every stack that was charged, root first, with its own time.
    pub fn stacks(&self) -> Vec<(Vec<Frame>, Ps)> {
        let stack = |mut at: u32| {
            let mut frames = Vec::new();
            while at != NONE {
                frames.push(self.nodes[at as usize].frame);
                at = self.nodes[at as usize].parent;
            }
            // Every other stack begins with a task's name; the root itself is the idle task's name.
            if frames.len() > 1 && matches!(frames[frames.len() - 2], Frame::Comm(_)) {
                frames.pop();
            }
            frames.reverse();
            frames
        };
        (0..self.nodes.len() as u32)
            .filter(|&n| self.nodes[n as usize].time > Ps::ZERO)
            .map(|n| (stack(n), self.nodes[n as usize].time))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_booked_on_the_stack_that_spent_it() {
        let mut tree = CallTree::new(2, Ps::ZERO);
        tree.run(0, 3);
        tree.enter(0, Path::schedule);
        tree.add(0, Ps(5));
        tree.enter(0, Path::pick_next_task);
        tree.add(0, Ps(7));
        tree.leave(0);
        tree.add(0, Ps(1));
        tree.leave(0);
        tree.add_frame(1, Frame::Idle(2), Ps(9));
        tree.stand(0, &[Path::schedule]);
        tree.add(0, Ps(2));
        let schedule = vec![Frame::Comm(3), Frame::Kernel(Path::schedule)];
        let pick = vec![Frame::Comm(3), Frame::Kernel(Path::schedule), Frame::Kernel(Path::pick_next_task)];
        let stacks = tree.stacks();
        assert!(stacks.contains(&(schedule, Ps(8))));
        assert!(stacks.contains(&(pick, Ps(7))));
        assert!(stacks.contains(&(vec![Frame::Comm(0), Frame::Idle(2)], Ps(9))));
        assert_eq!(stacks.len(), 3);
    }
}
