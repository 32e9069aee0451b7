import type { Logger } from 'pino'

export type Library = typeof import('oidc-provider')

/** Loads the library on first use. It warns on the console about the Node version without need; the warning goes to the log. */
export async function loadLibrary(log: Logger): Promise<Library> {
  const { warn } = console
  console.warn = (text) => log.debug({ text }, 'oidc-provider warning')
  try {
    return await import('oidc-provider')
  } finally {
    console.warn = warn
  }
}
