import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'

/**
 * Throws in an isolated copy: archives are made and imported in folders of the pod by the names in its rows, and the folder may be that
 * of the original.
 */
export function requireOriginalPod({ config }: Pick<Services, 'config'>): void {
  if (!config.isolated) return
  throw new Refusal(
    'isolated_copy',
    'This copy of the pod is isolated (ISOLATED): it neither makes exports nor imports archives.',
  )
}
