import type { Logger } from 'pino'

export type Library = typeof import('oidc-provider')

/** It writes to the console that it wants a newer Node, also where all it needs is there; that is for the log. */
export async function loadLibrary(log: Logger): Promise<Library> {
  const { warn } = console
  console.warn = (text) => log.debug({ text }, 'the authorization server has something to say')
  try {
    return await import('oidc-provider')
  } finally {
    console.warn = warn
  }
}
