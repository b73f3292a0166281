//! The window that a receiver offers: tcp_output.c and tcp_input.c.

use super::{LOOPBACK_MSS, TcpSock};
use crate::net::rules::GrowWindow;

impl TcpSock {
    /// tcp_output.c: __tcp_select_window(): the window that could be offered now.
    pub(super) fn __tcp_select_window(&mut self) -> u32 {
        let mut free_space = self.tcp_space();
        let allowed_space = self.tcp_full_space();
        let full_space = i64::from(self.window_clamp).min(allowed_space);
        let mss = i64::from(self.icsk_ack.rcv_mss).min(full_space);
        if free_space < full_space >> 1 {
            self.icsk_ack.quick = 0;
            free_space = (free_space >> self.rcv_wscale) << self.rcv_wscale;
            if free_space < allowed_space >> 4 || free_space < mss {
                return 0;
            }
        }
        let free_space = free_space.min(i64::from(self.rcv_ssthresh));
        if self.rcv_wscale > 0 {
            // Rounded up, so that scaling loses nothing.
            return (free_space as u32).next_multiple_of(1 << self.rcv_wscale);
        }
        // Without scaling: whole segments, and no new offer for less than one segment more.
        let window = i64::from(self.rcv_wnd);
        let offered = if window <= free_space - mss || window > free_space {
            free_space / mss * mss
        } else if mss == full_space && free_space > window + (full_space >> 1) {
            free_space
        } else {
            window
        };
        offered as u32
    }

    /// tcp_output.c: tcp_select_window(): the window offered with a segment that leaves now. It never shrinks.
    pub(super) fn tcp_select_window(&mut self) -> u32 {
        let cur_win = self.tcp_receive_window();
        let new_win = self.__tcp_select_window();
        self.rcv_wnd = if new_win < cur_win { cur_win.next_multiple_of(1 << self.rcv_wscale) } else { new_win };
        self.rcv_wup = self.rcv_nxt;
        self.rcv_wnd.min(65_535 << self.rcv_wscale)
    }

    /// tcp_input.c: tcp_grow_window(): a segment that fits well lets the window grow.
    ///
    /// Differs: since v5.19 the head of a segment whose data are in pages only does not count.
    pub(super) fn tcp_grow_window(&mut self, truesize: u32, len: u32, grows: GrowWindow) {
        let clamp = i64::from(self.window_clamp);
        let most = clamp.min(self.tcp_space());
        if i64::from(self.rcv_ssthresh) >= most {
            return;
        }
        let incr = if self.tcp_win_from_space(i64::from(truesize)) <= i64::from(len) {
            2 * LOOPBACK_MSS
        } else {
            self.__tcp_grow_window(truesize, len)
        };
        if incr > 0 {
            let most = if grows == GrowWindow::ToSpace { most } else { clamp };
            self.rcv_ssthresh = (self.rcv_ssthresh + incr.max(2 * len)).min(most as u32);
            self.icsk_ack.quick |= 1;
        }
    }

    /// tcp_input.c: __tcp_grow_window(): by how much, if the segment would fit with half the overhead for each halving
    /// of the window.
    fn __tcp_grow_window(&self, truesize: u32, len: u32) -> u32 {
        let mut truesize = self.tcp_win_from_space(i64::from(truesize)) >> 1;
        let mut window = self.tcp_win_from_space(i64::from(self.rmem_max)) >> 1;
        while i64::from(self.rcv_ssthresh) <= window {
            if truesize <= i64::from(len) {
                return 2 * self.icsk_ack.rcv_mss;
            }
            truesize >>= 1;
            window >>= 1;
        }
        0
    }
}
