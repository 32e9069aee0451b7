const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })

export function timeHtml(time: Date): string {
  return `<time datetime="${time.toISOString()}">${format.format(time)} UTC</time>`
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' })

export function dayHtml(time: Date): string {
  return `<time datetime="${time.toISOString()}">${day.format(time)}</time>`
}
