const shiftMs = Number(process.env.FAULTS_CLOCK)
const RealDate = Date

/** Shifts the wall clock of the process. The monotonic clock does not change. */
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shiftMs)
    else super(...args)
  }

  static now() {
    return RealDate.now() + shiftMs
  }
}
