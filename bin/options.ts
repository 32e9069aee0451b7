import { InvalidArgumentError } from 'commander'

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

/** Seconds from `90s`, `15m`, `12h`, `30d` or a plain number. */
export function readDuration(text: string): number {
  const [, digits, unit = 's'] = /^([0-9]{1,9})([smhd])?$/.exec(text.trim()) ?? []
  if (digits === undefined) throw new InvalidArgumentError('It must be a time like 90s, 15m, 12h or 30d.')
  return Number(digits) * SECONDS[unit as keyof typeof SECONDS]
}

export function readCount(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a number from 1.')
  return Number(text)
}
