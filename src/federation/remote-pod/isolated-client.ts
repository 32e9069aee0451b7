import type { RemotePodClient } from '../../services/remote-pod-client.js'
import { RemotePodError } from './remote-pod-error.js'

/** The client of an isolated pod: it refuses every request to other pods. */
export function openIsolatedRemotePodClient(): RemotePodClient & { close(): Promise<void> } {
  const refuse = async (url: string | URL): Promise<never> => {
    throw new RemotePodError('not_allowed', `${url} is not requested: this pod is isolated (ISOLATED).`)
  }
  return { get: refuse, post: refuse, close: async () => undefined }
}
