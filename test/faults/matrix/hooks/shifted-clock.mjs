const by = Number(process.env.FAULTS_CLOCK)
const RealDate = Date

/** Everything that asks what time it is hears something else; what measures how long something takes does not. */
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + by)
    else super(...args)
  }

  static now() {
    return RealDate.now() + by
  }
}
