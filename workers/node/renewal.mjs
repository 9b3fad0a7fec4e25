// Closes connections after a number of calls and opens them again, between two calls, not timed.

import { Call } from './lane.mjs';
import { ConnectError } from './prepare.mjs';
import { clock } from './window.mjs';

/** A call with its own session, which it renews after a number of calls. */
export class RenewedCall extends Call {
  close(now, fault) {
    const { lane, run, session } = this;
    if (!lane.prefill) session.callsMade += 1;
    if (session.callsMade < session.setup.reconnectAfter || now >= run.window.endNs || !lane.more) {
      super.close(now, fault);
      return;
    }
    run.note(this, now, fault);
    this.renewing = true; // the call stays outstanding: the loop waits for it
    this.beganNs = Infinity;
    session.renew().then(
      () => this.goOn(),
      (error) => run.abort(new ConnectError(`${session.setup.servers.join(', ')}: ${error?.message || error}`)),
    );
  }

  /** Drops an answer that arrives during a renewal. */
  end(answer, error) {
    if (!this.renewing) super.end(answer, error);
  }

  goOn() {
    const { run } = this;
    this.renewing = this.out = this.waiting = false;
    run.active -= 1;
    run.free(this, clock());
  }
}

/** The connections that sessions have renewed since the last call of this, and the barriers before. */
export function takeRenewed(sessions) {
  const taken = { renewed: 0, barriers: 0 };
  for (const session of sessions) {
    taken.renewed += session.renewed * session.setup.servers.length;
    taken.barriers += session.barriers;
    session.renewed = session.barriers = 0;
  }
  return taken;
}

/** A window's totals with its reopened connections: `opened` are all that were seen. */
export function withRenewed(sessions, opened, figures) {
  const { renewed, barriers } = takeRenewed(sessions);
  const reconnects = Math.max(0, opened - renewed); // some libraries' connections cannot be seen
  return { ...figures, barriers: figures.barriers + barriers, reconnects, renewed };
}
